//! How often each thing happened in the runs of a test.

use onward_embedded::CareReport;
use onward_sim::history::{Answer, History, What};

use super::plans::TICKS;
use super::queues::inlet;

/// Makes the counters, with the name of each and whether it is a fault.
macro_rules! counters {
    (faults { $($fault:ident: $fault_name:literal,)* } happenings { $($other:ident: $other_name:literal,)* }) => {
        /// How often each thing happened.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub(crate) struct Counters {
            $(pub(crate) $fault: u64,)*
            $(pub(crate) $other: u64,)*
        }

        impl Counters {
            /// Each with its name.
            pub(crate) fn each(&self) -> Vec<(&'static str, u64)> {
                vec![$(($fault_name, self.$fault),)* $(($other_name, self.$other),)*]
            }

            /// How many faults there were.
            pub(crate) fn faults(&self) -> u64 {
                [$(self.$fault,)*].iter().sum()
            }

            pub(crate) fn add(&mut self, other: &Counters) {
                $(self.$fault += other.$fault;)*
                $(self.$other += other.$other;)*
            }
        }
    };
}

counters! {
    faults {
        kills: "kills",
        closes: "closes",
        power_cuts: "power cuts",
        torn_power_cuts: "torn power cuts",
        power_cuts_at_step: "power cuts at a step",
        power_cuts_in_recovery: "power cuts in recovery",
        power_cuts_in_care: "power cuts in the folder's care",
        power_cuts_in_release: "power cuts in giving segments back",
        power_cuts_in_forwarding: "power cuts in copying forward",
        failed_writes: "failed writes",
        failed_syncs: "failed syncs",
        short_writes: "short writes",
        full_disks: "full disks",
        clock_steps: "clock steps",
        clock_stalls: "clock stalls",
        second_openings: "second openings",
        flips: "flipped bits",
        lost_answers: "lost answers",
    }
    happenings {
        refused_full: "refusals of a full disk",
        snapshots: "snapshots",
        moved: "bodies moved",
        released: "segments released",
        published: "messages published",
        seeks: "subscriptions moved",
        appended: "appends",
        appends_refused: "appends refused",
        appends_repeated: "appends recognised as repeats",
        truncated: "streams truncated",
        ticks: "ticks handed out",
    }
}

impl Counters {
    pub(crate) fn cared_for(&mut self, report: &CareReport) {
        self.snapshots += u64::from(report.snapshot_bytes.is_some());
        self.moved += report.moved;
        self.released += report.released;
    }
}

impl Counters {
    /// Counts what the calls of a run came to.
    pub(crate) fn count_up(&mut self, history: &History) {
        for event in &history.events {
            let done = event.answer == Answer::Ok;
            match &event.what {
                What::Publish { .. } => self.published += u64::from(done),
                What::Seek(_) => self.seeks += u64::from(done),
                What::Truncate { .. } => self.truncated += u64::from(done),
                What::Append(addition) => {
                    let repeated = addition.answer.is_some_and(|answer| answer.duplicate);
                    self.appended += u64::from(done && !repeated);
                    self.appends_repeated += u64::from(repeated);
                    self.appends_refused += u64::from(event.answer == Answer::Refused);
                }
                What::Deliver(delivered) => self.ticks += u64::from(delivered.token.inlet == inlet(TICKS)),
                _ => {}
            }
        }
    }
}
