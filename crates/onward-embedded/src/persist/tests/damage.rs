//! Snapshots that are missing, stale, cut or damaged; formats that are newer.

use super::desk::{Desk, SECTOR, Sent, snapshots};
use crate::persist::snapshot_file::name_of;
use onward_core::ErrorKind;
use onward_log::{Disk, Mode};
use onward_proves::proves;
use onward_sim::{Loss, SimDisk};

/// A folder with two snapshots and a tail behind them; nothing was released.
fn folder() -> (SimDisk, Vec<Sent>) {
    let disk = SimDisk::new(SECTOR);
    let desk = Desk::open(&disk).unwrap();
    let mut sent = Vec::new();
    for part in 0..3 {
        sent.extend((0..5).map(|number| desk.enqueue(part * 5 + number, 100).unwrap()));
        desk.finish(sent.remove(0)).unwrap();
        desk.sync().unwrap();
        if part < 2 {
            desk.snapshot().unwrap().unwrap();
        }
    }
    (disk.crash(Loss::All), sent)
}

fn numbers(sent: &[Sent]) -> std::collections::BTreeSet<u64> {
    sent.iter().map(|sent| sent.number).collect()
}

pub(super) fn remove_snapshots(disk: &SimDisk) {
    snapshots(disk).into_iter().for_each(|position| remove(disk, &name_of(position)));
}

fn remove(disk: &SimDisk, name: &str) {
    disk.delete(name).unwrap();
    disk.sync_dir().unwrap();
}

#[test]
#[proves("LOG11")]
fn a_missing_stale_or_last_snapshot_changes_nothing_of_the_state() {
    let (disk, sent) = folder();
    let newest = snapshots(&disk)[0];
    let desk = Desk::open(&disk.fork()).unwrap();
    assert_eq!(desk.report.snapshot, Some(newest));
    let all = desk.report.facts;
    assert_eq!(desk.there().unwrap(), numbers(&sent));

    let stale = disk.fork();
    remove(&stale, &name_of(newest));
    let desk = Desk::open(&stale).unwrap();
    assert_eq!(desk.report.snapshot, Some(snapshots(&disk)[1]));
    assert!(desk.report.facts > all, "the tail behind the older one is longer");
    assert_eq!(desk.there().unwrap(), numbers(&sent));

    let none = disk.fork();
    remove_snapshots(&none);
    let desk = Desk::open(&none).unwrap();
    assert_eq!(desk.report.snapshot, None);
    assert_eq!(desk.there().unwrap(), numbers(&sent));
}

#[test]
#[proves("LOG11", "LOG8")]
fn a_flipped_bit_anywhere_in_the_newest_snapshot_is_seen_and_the_older_one_used() {
    let (disk, sent) = folder();
    let names: Vec<String> = snapshots(&disk).into_iter().map(name_of).collect();
    let bytes = disk.contents(&names[0]).unwrap().len() as u64;
    for offset in 0..bytes {
        let damaged = disk.fork();
        damaged.flip(&names[0], offset, (offset % 8) as u8);
        let desk = Desk::open(&damaged).unwrap();
        assert_eq!(desk.report.snapshot, Some(snapshots(&disk)[1]), "byte {offset}");
        assert_eq!(desk.report.passed_over.len(), 1);
        assert_eq!(desk.there().unwrap(), numbers(&sent));
    }
}

#[test]
#[proves("LOG11", "LOG9")]
fn a_snapshot_cut_at_any_byte_is_passed_over() {
    let (disk, sent) = folder();
    let name = name_of(snapshots(&disk)[0]);
    let bytes = disk.contents(&name).unwrap();
    for cut in (0..bytes.len()).step_by(13) {
        let damaged = disk.fork();
        remove(&damaged, &name);
        let file = damaged.create(&name, Mode::Buffered).unwrap();
        if cut > 0 {
            file.write_at(&bytes[..cut], 0).unwrap();
        }
        let desk = Desk::open(&damaged).unwrap();
        assert_eq!(desk.report.passed_over.len(), 1, "cut at {cut}");
        assert_eq!(desk.there().unwrap(), numbers(&sent));
    }
}

#[test]
#[proves("LOG11", "LOG7")]
fn without_a_snapshot_and_without_the_first_segments_nothing_is_opened_or_changed() {
    let disk = SimDisk::new(SECTOR);
    let desk = Desk::open(&disk).unwrap();
    let sent: Vec<Sent> = (0..200).map(|number| desk.enqueue(number, 700).unwrap()).collect();
    sent[..190].iter().for_each(|sent| desk.finish(*sent).unwrap());
    for _ in 0..20 {
        desk.sync().unwrap();
        desk.step().unwrap();
    }
    assert!(desk.segments()[0] > 1);
    drop(desk);
    let disk = disk.crash(Loss::All);
    remove_snapshots(&disk);
    let steps = disk.steps().len();
    let error = Desk::open(&disk).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    assert!(error.to_string().contains("snapshot"), "{error}");
    assert_eq!(disk.steps().len(), steps, "something was written");
}

#[test]
#[proves("LOG11", "LOG16")]
fn after_segments_were_released_the_older_snapshot_is_still_enough_to_start() {
    let disk = SimDisk::new(SECTOR);
    let desk = Desk::open(&disk).unwrap();
    let mut sent: Vec<Sent> = Vec::new();
    for round in 0..40 {
        sent.extend((0..5).map(|number| desk.enqueue(round * 5 + number, 700).unwrap()));
        sent.drain(..4).for_each(|sent| desk.finish(sent).unwrap());
        desk.sync().unwrap();
        desk.step().unwrap();
        let damaged = disk.fork();
        if let Some(newest) = snapshots(&damaged).first() {
            damaged.flip(&name_of(*newest), 40, 0);
        }
        let again = Desk::open(&damaged).unwrap_or_else(|error| panic!("round {round}: {error}"));
        assert_eq!(again.there().unwrap(), numbers(&sent), "round {round}");
    }
    assert!(desk.segments()[0] > 5, "nothing was released: {:?}", desk.segments());
}

#[test]
#[proves("LOG21")]
fn a_folder_of_a_newer_format_is_refused_without_writing() {
    let (disk, _) = folder();
    remove(&disk, "format");
    disk.create("format", Mode::Buffered).unwrap().write_at(b"onward data folder, format 2\n", 0).unwrap();
    let steps = disk.steps().len();
    let error = Desk::open(&disk).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    assert!(error.to_string().contains("format 2"), "{error}");
    assert_eq!(disk.steps().len(), steps, "something was written");
}

#[test]
#[proves("LOG21")]
fn a_folder_that_is_not_ours_is_refused_without_writing() {
    let disk = SimDisk::new(SECTOR);
    disk.create("format", Mode::Buffered).unwrap().write_at(b"ntfs", 0).unwrap();
    let steps = disk.steps().len();
    assert_eq!(Desk::open(&disk).unwrap_err().kind(), ErrorKind::Corrupt);
    assert_eq!(disk.steps().len(), steps, "something was written");
}
