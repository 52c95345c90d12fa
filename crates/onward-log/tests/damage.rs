//! Telling what a power cut may leave from damage to what was durable.

mod common;

use common::{Opened, append, bytes_of, drain, open, try_open};
use onward_log::{LogError, Position};
use onward_proves::proves;
use onward_sim::{Loss, SimDisk};

const FIRST: &str = "0000000001.seg";

/// Three groups, each durable before the next; `attested` says so of the last one too.
fn three_groups(attested: bool) -> (SimDisk, Opened, Vec<Position>) {
    let disk = SimDisk::new(512);
    let opened = open(&disk);
    let positions = (0..3u8)
        .map(|number| {
            let position = append(&opened.log, &[number; 300]);
            drain(&opened.log);
            position
        })
        .collect();
    if attested {
        assert!(opened.log.attest());
        drain(&opened.log);
        assert!(!opened.log.attest(), "once is enough");
    }
    (disk, opened, positions)
}

fn refused(disk: &SimDisk) -> LogError {
    let before = disk.contents(FIRST);
    let error = try_open(disk).map(|opened| opened.report).expect_err("damage is refused");
    assert!(disk.steps().is_empty(), "nothing was changed: {:?}", disk.steps());
    assert_eq!(disk.contents(FIRST), before);
    error
}

#[test]
#[proves("LOG7")]
fn damage_to_what_was_durable_stops_the_opening_and_names_file_and_position() {
    let (disk, _opened, positions) = three_groups(true);
    for (at, position) in positions.iter().enumerate() {
        let damaged = disk.fork();
        damaged.flip(FIRST, position.offset() + 40, 3);
        let error = refused(&damaged);
        let group = Position(position.0 / 512 * 512);
        assert!(
            matches!(&error, LogError::Corrupt { file, position, .. } if file == FIRST && *position == group),
            "group {at}: {error}"
        );
        assert!(error.to_string().contains(FIRST) && error.to_string().contains(&group.to_string()));
    }
}

#[test]
#[proves("LOG7")]
fn a_lost_stretch_in_the_middle_is_damage_even_if_nothing_behind_it_can_be_reached() {
    let (disk, _opened, positions) = three_groups(true);
    disk.overwrite(FIRST, positions[0].offset() / 512 * 512, &[0; 1024]);
    let damaged = disk.fork();
    assert!(matches!(refused(&damaged), LogError::Corrupt { .. }));
}

#[test]
#[proves("LOG7")]
fn a_missing_segment_is_damage() {
    use onward_log::Disk;
    let disk = SimDisk::new(512);
    let opened = open(&disk);
    for _ in 0..12 {
        append(&opened.log, &[1; 3000]);
        drain(&opened.log);
    }
    drop(opened);
    for lost in ["0000000001.seg", "0000000002.seg"] {
        let damaged = disk.fork();
        damaged.delete(lost).expect("it is there");
        let error = try_open(&damaged).map(|opened| opened.seen.len());
        // Without the first segment, the log could have been released up to the second one.
        match error {
            Ok(seen) => assert!(lost == "0000000001.seg" && seen < 12),
            Err(error) => assert!(matches!(error, LogError::Corrupt { .. }), "{error}"),
        }
        let from = Some(Position::at(1, 4096));
        let error = common::open_on(std::sync::Arc::new(damaged), common::small(), from);
        assert!(matches!(error, Err(LogError::Corrupt { .. })), "a replay from a known place finds the gap");
    }
}

#[test]
#[proves("LOG7")]
fn a_log_that_ends_before_the_place_to_replay_from_is_damage() {
    let (disk, opened, _) = three_groups(false);
    let end = opened.log.progress().synced;
    drop(opened);
    let from = Some(Position(end.0 + 512));
    let error = common::open_on(std::sync::Arc::new(disk), common::small(), from);
    assert!(matches!(error, Err(LogError::Corrupt { .. })));
}

#[test]
#[proves("LOG7")]
fn what_a_power_cut_leaves_behind_a_torn_group_is_cut_and_reported() {
    let disk = SimDisk::new(512);
    let opened = open(&disk);
    append(&opened.log, b"kept");
    drain(&opened.log);
    let end = opened.log.progress().synced;
    let groups: Vec<_> = (0..3u8)
        .map(|number| {
            append(&opened.log, &[number + 1; 700]);
            opened.log.begin().expect("works").expect("there is a group")
        })
        .collect();
    groups.iter().for_each(|group| group.write().expect("works"));
    // Of three groups under way, the first is torn; the other two are whole.
    disk.overwrite(FIRST, end.offset() + 512, &[0; 512]);
    let torn = disk.crash(Loss::Nothing);
    let again = open(&torn);
    assert_eq!(bytes_of(&again.seen), [b"kept"]);
    assert_eq!(again.report.end, end);
    let cut = again.report.cut.expect("the cut is reported");
    assert_eq!((cut.file.as_str(), cut.position, cut.bytes), (FIRST, end, 3 * 1024));
    // What was cut never comes back, whatever is appended in its place.
    append(&again.log, b"new");
    drain(&again.log);
    let last = open(&torn.crash(Loss::All));
    assert_eq!(bytes_of(&last.seen), [b"kept".to_vec(), b"new".to_vec()]);
}

#[test]
#[proves("LOG8")]
fn a_flipped_bit_in_what_was_durable_never_gives_a_wrong_record_or_hides_one() {
    let (disk, opened, positions) = three_groups(true);
    let whole = bytes_of(&open(&disk.fork()).seen);
    let end = opened.log.progress().synced.offset();
    let (mut refusals, mut harmless) = (0, 0);
    for offset in 0..end {
        let damaged = disk.fork();
        damaged.flip(FIRST, offset, (offset % 8) as u8);
        match try_open(&damaged) {
            Ok(opened) => {
                assert_eq!(bytes_of(&opened.seen), whole, "a bit of byte {offset} changed what is replayed");
                harmless += 1;
            }
            Err(LogError::Corrupt { .. }) => refusals += 1,
            Err(LogError::NewerFormat { .. }) => assert!((8..12).contains(&offset)),
            Err(other) => panic!("byte {offset}: {other}"),
        }
    }
    let records = (300 + 20 + 72) * 3;
    assert!(
        refusals >= records,
        "only {refusals} of at least {records} were refused, {harmless} did no harm"
    );
    assert_eq!(positions.len(), whole.len());
}

#[test]
#[proves("LOG8")]
fn a_record_whose_bytes_changed_on_the_disk_is_not_read() {
    let (disk, opened, positions) = three_groups(true);
    drop(opened);
    // Opened before the damage, with nothing of it in memory.
    let opened = open(&disk);
    for offset in positions[1].offset()..positions[1].offset() + 320 {
        disk.flip(FIRST, offset, 1);
        let read = opened.log.read(positions[1]);
        assert!(
            matches!(&read, Err(LogError::Corrupt { position, .. }) if *position == positions[1]),
            "byte {offset}: {read:?}"
        );
        disk.flip(FIRST, offset, 1);
    }
    assert_eq!(opened.log.read(positions[1]).expect("it is whole again").bytes, [1; 300][..]);
}

/// Twelve groups over four segments of three each, opened anew so that nothing is in memory.
fn several_segments() -> (SimDisk, Opened, Vec<Position>) {
    let disk = SimDisk::new(512);
    let opened = open(&disk);
    let appended = (0..12u8).map(|number| {
        let position = append(&opened.log, &[number; 3500]);
        drain(&opened.log);
        position
    });
    let positions = appended.collect();
    drop(opened);
    let opened = open(&disk);
    (disk, opened, positions)
}

#[test]
#[proves("LOG8")]
fn a_scan_stops_at_damage_in_any_segment_and_passes_over_released_ones() {
    let (disk, opened, positions) = several_segments();
    let scan = || {
        let mut seen = Vec::new();
        let scanned = opened.log.scan(Position::ZERO, opened.log.end(), &mut |record| {
            seen.push(record.position);
            Ok(())
        });
        scanned.map(|_| seen)
    };
    assert_eq!(scan().expect("it is whole"), positions);
    for position in &positions {
        let group = Position(position.0 / 512 * 512);
        // The group's header, or a byte of its record.
        for offset in [group.offset() + 30, position.offset() + 100] {
            let file = format!("{:010}.seg", position.segment());
            disk.flip(&file, offset, 0);
            let found = scan();
            assert!(
                matches!(&found, Err(LogError::Corrupt { position, .. }) if *position == group),
                "{position}: {found:?}"
            );
            disk.flip(&file, offset, 0);
        }
    }
    let second = opened.log.segments()[1].index;
    opened.log.release(second).expect("it is complete");
    let left: Vec<_> = positions.iter().copied().filter(|at| at.segment() != second).collect();
    assert_eq!(scan().expect("the rest is whole"), left);
}

#[test]
#[proves("LOG8", "LOG10")]
fn a_whole_record_that_stands_in_the_wrong_place_is_not_read() {
    let (disk, opened, positions) = three_groups(true);
    drop(opened);
    let opened = open(&disk);
    let bytes = disk.contents(FIRST).expect("it is there");
    let [from, to] = [positions[0].offset(), positions[1].offset()];
    disk.overwrite(FIRST, to, &bytes[from as usize..from as usize + 320]);
    assert_eq!(opened.log.read(positions[0]).expect("its own place").bytes, [0; 300][..]);
    assert!(matches!(opened.log.read(positions[1]), Err(LogError::Corrupt { .. })));
}

#[test]
#[proves("LOG21")]
fn a_newer_format_is_refused_without_writing() {
    let (disk, _opened, _) = three_groups(true);
    let newer = disk.fork();
    newer.overwrite(FIRST, 8, &2u32.to_le_bytes());
    let error = refused(&newer);
    assert!(matches!(error, LogError::NewerFormat { found: 2, known: 1, .. }), "{error}");
}

#[test]
#[proves("LOG10")]
fn bytes_left_in_a_reused_segment_are_never_replayed() {
    let disk = SimDisk::new(512);
    let opened = open(&disk);
    let mut from = Position::ZERO;
    while opened.log.segments().len() < 3 {
        from = append(&opened.log, &[b'o'; 700]);
        drain(&opened.log);
    }
    let first = opened.log.segments()[0].index;
    opened.log.release(first).expect("it is complete");
    let mut last = from;
    while last.segment() < from.segment() + 3 {
        last = append(&opened.log, &[b'n'; 500]);
        drain(&opened.log);
    }
    let reused = disk.contents(&format!("{:010}.seg", last.segment())).expect("it is there");
    assert!(reused.windows(700).any(|bytes| bytes == [b'o'; 700]), "old bytes are still in the file");
    let again = common::open_on(std::sync::Arc::new(disk.crash(Loss::All)), common::small(), Some(from));
    let seen = again.expect("it opens").seen;
    assert!(seen.iter().skip(1).all(|record| record.bytes == [b'n'; 500]));
    assert_eq!(seen.last().map(|record| record.position), Some(last));
}
