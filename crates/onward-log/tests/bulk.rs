//! Reading many records in one go.

mod common;

use std::sync::Arc;

use common::meddling::{MeddlingDisk, When};
use common::{Opened, append, append_as, drain, open, open_on, small};
use onward_log::{Log, LogError, Position, Purpose, RealDisk};
use onward_proves::proves;
use onward_sim::SimDisk;

/// What was found: which of the positions, and its bytes.
type FoundAll = Vec<(usize, Vec<u8>)>;

/// All records at these positions; those found before an error stay in `found`.
fn read_into(log: &Log, positions: &[Position], found: &mut FoundAll) -> Result<(), LogError> {
    log.read_many(positions, &mut |one| {
        assert_eq!(one.kind, 7);
        found.push((one.index, one.bytes.to_vec()));
        true
    })
}

fn read(log: &Log, positions: &[Position]) -> Result<FoundAll, LogError> {
    let mut found = Vec::new();
    read_into(log, positions, &mut found).map(|()| found)
}

/// A log of so many records of 120 bytes, opened anew before any damage, with nothing of it in memory.
fn reopened(count: u8) -> (SimDisk, Opened, Vec<Position>) {
    let disk = SimDisk::new(512);
    let opened = open(&disk);
    let positions = (0..count).map(|number| append(&opened.log, &[number; 120])).collect();
    drain(&opened.log);
    drop(opened);
    let opened = open(&disk);
    (disk, opened, positions)
}

/// Records of many sizes over several segments, the longest longer than what is read of a piece's last record. Only
/// the newest are in memory; the last one is not written yet.
fn records(log: &Log) -> Vec<(Position, Vec<u8>)> {
    let mut records = Vec::new();
    for number in 0..60u8 {
        let sizes = [10 + usize::from(number), 900, if number % 7 == 0 { 5_000 } else { 300 }];
        let unit: Vec<Vec<u8>> = sizes.iter().map(|size| vec![number; *size]).collect();
        if number > 0 {
            drain(log);
        }
        let (places, _) = append_as(log, Purpose::Essential, 0, &unit).expect("the append is taken");
        records.extend(places.into_iter().zip(unit));
    }
    records
}

/// The numbers below `count` in an order without order, some of them twice.
fn mixed(count: usize) -> Vec<usize> {
    (0..count * 2).map(|number| number * 7919 % (count + 3)).filter(|number| *number < count).collect()
}

#[test]
fn many_records_are_read_in_the_order_asked_whether_in_memory_or_in_files() {
    let opened = open(&SimDisk::new(512));
    let records = records(&opened.log);
    assert!(records[0].0.segment() + 3 < records[179].0.segment(), "they lie in several segments");
    let forward: Vec<usize> = (0..records.len()).collect();
    let backward: Vec<usize> = forward.iter().rev().copied().collect();
    let sparse: Vec<usize> = forward.iter().step_by(11).copied().collect();
    for order in [forward, backward, sparse, mixed(records.len())] {
        let positions: Vec<Position> = order.iter().map(|number| records[*number].0).collect();
        let wanted: FoundAll =
            order.iter().enumerate().map(|(at, number)| (at, records[*number].1.clone())).collect();
        assert!(read(&opened.log, &positions).expect("the log is whole") == wanted);
    }
    assert!(read(&opened.log, &[]).expect("nothing was asked").is_empty());
}

#[test]
fn what_lies_together_is_read_with_few_reads_of_the_disk() {
    let sim = SimDisk::new(512);
    let opened = open(&sim);
    let records = records(&opened.log);
    drain(&opened.log);
    let end = opened.log.progress().synced;
    drop(opened);
    let (disk, meddler) = MeddlingDisk::over(sim);
    let opened = open_on(disk, small(), Some(end)).expect("it opens");
    let segments = opened.log.segments().len() as u64;
    let before = meddler.reads();
    let positions: Vec<Position> = records.iter().map(|(position, _)| *position).collect();
    let found = read(&opened.log, &positions).expect("the log is whole");
    assert_eq!(found.len(), records.len());
    let reads = meddler.reads() - before;
    // One or two for each segment's piece, and of a long record at the end of one, two more.
    assert!(reads <= segments * 4, "{reads} reads for {} records in {segments} segments", records.len());
}

#[test]
fn reading_ends_as_soon_as_no_more_is_wanted() {
    let opened = open(&SimDisk::new(512));
    let records = records(&opened.log);
    let positions: Vec<Position> = records.iter().map(|(position, _)| *position).collect();
    // From files, from memory, and the first of all.
    for wanted in [1, 20, records.len() - 2] {
        let mut shown = 0;
        let read = opened.log.read_many(&positions, &mut |_| {
            shown += 1;
            shown < wanted
        });
        assert!(read.is_ok() && shown == wanted, "{shown} of {wanted}: {read:?}");
    }
}

#[test]
#[proves("LOG8")]
fn a_flipped_bit_in_the_middle_stops_the_reading_there_and_what_stands_before_was_shown() {
    let (disk, opened, positions) = reopened(9);
    let file = format!("{:010}.seg", positions[4].segment());
    for offset in positions[4].offset()..positions[4].offset() + 140 {
        for bit in [0, 7] {
            disk.flip(&file, offset, bit);
            let mut found = Vec::new();
            let read = read_into(&opened.log, &positions, &mut found);
            assert!(
                matches!(&read, Err(LogError::Corrupt { position, .. }) if *position == positions[4]),
                "byte {offset}: {read:?}"
            );
            assert_eq!(found.len(), 4);
            disk.flip(&file, offset, bit);
        }
    }
    assert_eq!(read(&opened.log, &positions).expect("it is whole again").len(), 9);
}

#[test]
#[proves("LOG8", "LOG10")]
fn a_whole_record_in_the_wrong_place_is_not_taken_for_the_one_asked_for() {
    let (disk, opened, positions) = reopened(3);
    let file = format!("{:010}.seg", positions[0].segment());
    let bytes = disk.contents(&file).expect("it is there");
    let from = positions[0].offset() as usize;
    disk.overwrite(&file, positions[1].offset(), &bytes[from..from + 140]);
    let read = read(&opened.log, &positions);
    assert!(matches!(&read, Err(LogError::Corrupt { position, .. }) if *position == positions[1]));
}

#[test]
#[proves("LOG8")]
fn a_file_that_was_cut_short_is_damage_at_the_first_record_that_is_not_whole() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder can be made");
    let disk = || Arc::new(RealDisk::open(folder.path()).expect("the folder is usable"));
    let config = onward_log::Config { segment_bytes: 64 << 10, ..small() };
    let opened = open_on(disk(), config.clone(), None).expect("it opens");
    let positions: Vec<Position> = (0..6u8).map(|number| append(&opened.log, &[number; 900])).collect();
    drain(&opened.log);
    drop(opened);
    let opened = open_on(disk(), config, None).expect("it opens again");
    let path = folder.path().join(format!("{:010}.seg", positions[0].segment()));
    let file = std::fs::File::options().write(true).open(path).expect("it is there");
    for (kept, cut) in [(4, positions[4].offset() + 10), (2, positions[2].offset() + 919), (0, 64)] {
        file.set_len(cut).expect("it is cut");
        let mut found = Vec::new();
        let read = read_into(&opened.log, &positions, &mut found);
        let damaged = positions[kept];
        assert!(
            matches!(&read, Err(LogError::Corrupt { position, .. }) if *position == damaged),
            "cut at {cut}: {read:?}"
        );
        assert_eq!(found.len(), kept);
    }
}

#[test]
#[proves("LOG16")]
fn records_of_released_segments_are_passed_over_and_the_others_keep_their_numbers() {
    let opened = open(&SimDisk::new(512));
    let records = records(&opened.log);
    drain(&opened.log);
    let second = opened.log.segments()[1].index;
    opened.log.release(second).expect("it is complete");
    let positions: Vec<Position> = records.iter().map(|(position, _)| *position).collect();
    let left = records.iter().enumerate().filter(|(_, (position, _))| position.segment() != second);
    let left: FoundAll = left.map(|(at, (_, bytes))| (at, bytes.clone())).collect();
    assert!(left.len() < records.len());
    assert!(read(&opened.log, &positions).expect("the rest is whole") == left);
}

/// Releases a segment at a moment in the middle of a read, and fills its file anew; the read shows every record of the
/// others, and of this one only what was written there.
fn released_at(when: When) {
    let sim = SimDisk::new(512);
    let opened = open(&sim);
    let records = records(&opened.log);
    drain(&opened.log);
    let end = opened.log.progress().synced;
    drop(opened);
    let (disk, meddler) = MeddlingDisk::over(sim);
    let opened = open_on(disk, small(), Some(end)).expect("it opens");
    let segment = opened.log.segments()[1].index;
    let log = opened.log.clone();
    meddler.meddle(when, &format!("{segment:010}.seg"), move || {
        log.release(segment).expect("it is complete");
        let last = log.end().segment();
        while log.end().segment() < last + 4 {
            append_as(&log, Purpose::Essential, 0, &[vec![b'n'; 5_000]]).expect("the append is taken");
            drain(&log);
        }
    });
    let (positions, bytes): (Vec<Position>, Vec<Vec<u8>>) = records.into_iter().unzip();
    let found = read(&opened.log, &positions).expect("a release is no damage");
    assert!(meddler.is_done(), "the segment was released in the middle");
    assert!(found.iter().all(|(at, found)| *found == bytes[*at]));
    let shown: Vec<usize> = found.iter().map(|(at, _)| *at).collect();
    let others = (0..positions.len()).filter(|at| positions[*at].segment() != segment);
    assert!(others.clone().all(|at| shown.contains(&at)) && shown.len() < positions.len());
    let one = positions.iter().find(|position| position.segment() == segment).expect("there is one");
    assert!(matches!(opened.log.read(*one), Err(LogError::OutOfRange { .. })));
}

#[test]
#[proves("LOG16")]
fn a_segment_that_is_released_before_its_file_is_opened_is_passed_over() {
    released_at(When::Open);
}

#[test]
#[proves("LOG16")]
fn a_segment_that_is_released_and_filled_anew_before_its_file_is_read_is_passed_over() {
    released_at(When::Read);
}

#[test]
#[proves("LOG16")]
fn a_single_record_whose_segment_is_released_while_it_is_read_is_out_of_range_not_damaged() {
    for when in [When::Open, When::Read] {
        let sim = SimDisk::new(512);
        let opened = open(&sim);
        let position = records(&opened.log)[0].0;
        drain(&opened.log);
        let end = opened.log.progress().synced;
        drop(opened);
        let (disk, meddler) = MeddlingDisk::over(sim);
        let opened = open_on(disk, small(), Some(end)).expect("it opens");
        let log = opened.log.clone();
        meddler.meddle(when, &format!("{:010}.seg", position.segment()), move || {
            log.release(position.segment()).expect("it is complete");
            let last = log.end().segment();
            while log.end().segment() < last + 4 {
                append_as(&log, Purpose::Essential, 0, &[vec![b'n'; 5_000]]).expect("the append is taken");
                drain(&log);
            }
        });
        let read = opened.log.read(position);
        assert!(meddler.is_done() && matches!(read, Err(LogError::OutOfRange { .. })), "{read:?}");
    }
}
