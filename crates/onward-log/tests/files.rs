//! Small files that are replaced as a whole, as snapshots are.

use onward_log::{LogError, read_file};
use onward_proves::proves;
use onward_sim::{Loss, SimDisk};

#[test]
#[proves("LOG3", "LOG6")]
fn a_file_replaced_as_a_whole_is_the_old_one_or_the_new_one_after_a_crash_at_any_step() {
    let disk = SimDisk::new(512);
    onward_log::atomic_write(&disk, "state", &[b"old ", b"one"]).expect("works");
    for step in 1.. {
        let copy = disk.fork();
        copy.stop_at(step);
        let written = onward_log::atomic_write(&copy, "state", &[&[b'n'; 2000]]).is_ok();
        for loss in [Loss::All, Loss::Nothing, Loss::Random(step)] {
            let left =
                read_file(&copy.crash(loss), "state", 4000).expect("it is whole").expect("it is there");
            let new = left == [b'n'; 2000];
            assert!(new || (left == b"old one" && !written), "step {step}, {loss:?}");
        }
        if written {
            assert!(step > 4);
            break;
        }
    }
}

#[test]
#[proves("LOG9")]
fn a_damaged_or_oversized_file_is_refused_before_its_length_is_believed() {
    let disk = SimDisk::new(512);
    onward_log::atomic_write(&disk, "state", &[&[7; 600]]).expect("works");
    assert!(matches!(read_file(&disk, "state", 599), Err(LogError::TooLarge { bytes: 600, max: 599 })));
    assert_eq!(read_file(&disk, "other", 10).expect("absence is no error"), None);
    for offset in 0..20 {
        disk.flip("state", offset, 7);
        assert!(matches!(read_file(&disk, "state", 600), Err(LogError::Corrupt { .. })), "byte {offset}");
        disk.flip("state", offset, 7);
    }
    assert_eq!(read_file(&disk, "state", 600).expect("whole").expect("there"), [7; 600]);
}
