//! Segments made ahead of what fills them.

mod common;

use common::{append, drain, open, small};
use onward_sim::SimDisk;

#[test]
fn segments_for_large_groups_are_reserved_those_for_small_ones_written_ahead() {
    for (bytes, zeros) in [(5 << 10, 0), (100, small().segment_bytes)] {
        let disk = SimDisk::new(512);
        let opened = open(&disk);
        while opened.log.end().segment() < 3 {
            append(&opened.log, &vec![7; bytes]);
            drain(&opened.log);
        }
        let before = disk.steps().len();
        while opened.log.end().segment() < 4 {
            append(&opened.log, &vec![7; bytes]);
            drain(&opened.log);
        }
        opened.log.maintain().expect("segments are made ahead");
        let made = &disk.steps()[before..];
        let allocated = made.iter().filter(|step| step.what == "allocate").count() as u64;
        assert!(allocated > 0, "segments were made: {made:?}");
        let ahead = made.iter().filter(|step| step.what == "write" && !step.file.ends_with(".seg"));
        assert_eq!(ahead.map(|step| step.bytes).sum::<u64>(), allocated * zeros, "{bytes} bytes a group");
    }
}
