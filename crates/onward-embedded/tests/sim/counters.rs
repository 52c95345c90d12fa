//! How often each thing happened in the runs of a test.

use onward_embedded::CareReport;

/// How often each thing happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counters {
    pub(crate) kills: u64,
    pub(crate) closes: u64,
    pub(crate) power_cuts: u64,
    pub(crate) torn_power_cuts: u64,
    pub(crate) power_cuts_at_step: u64,
    pub(crate) power_cuts_in_recovery: u64,
    pub(crate) failed_writes: u64,
    pub(crate) failed_syncs: u64,
    pub(crate) short_writes: u64,
    pub(crate) full_disks: u64,
    pub(crate) refused_full: u64,
    pub(crate) clock_steps: u64,
    pub(crate) clock_stalls: u64,
    pub(crate) second_openings: u64,
    pub(crate) flips: u64,
    pub(crate) lost_answers: u64,
    pub(crate) snapshots: u64,
    pub(crate) moved: u64,
    pub(crate) released: u64,
}

impl Counters {
    pub(crate) fn cared_for(&mut self, report: &CareReport) {
        self.snapshots += u64::from(report.snapshot_bytes.is_some());
        self.moved += report.moved;
        self.released += report.released;
    }

    /// Each with its name.
    pub(crate) fn each(&self) -> [(&'static str, u64); 19] {
        [
            ("kills", self.kills),
            ("closes", self.closes),
            ("power cuts", self.power_cuts),
            ("torn power cuts", self.torn_power_cuts),
            ("power cuts at a step", self.power_cuts_at_step),
            ("power cuts in recovery", self.power_cuts_in_recovery),
            ("failed writes", self.failed_writes),
            ("failed syncs", self.failed_syncs),
            ("short writes", self.short_writes),
            ("full disks", self.full_disks),
            ("refusals of a full disk", self.refused_full),
            ("clock steps", self.clock_steps),
            ("clock stalls", self.clock_stalls),
            ("second openings", self.second_openings),
            ("flipped bits", self.flips),
            ("lost answers", self.lost_answers),
            ("snapshots", self.snapshots),
            ("bodies moved", self.moved),
            ("segments released", self.released),
        ]
    }

    pub(crate) fn add(&mut self, other: &Counters) {
        self.kills += other.kills;
        self.closes += other.closes;
        self.power_cuts += other.power_cuts;
        self.torn_power_cuts += other.torn_power_cuts;
        self.power_cuts_at_step += other.power_cuts_at_step;
        self.power_cuts_in_recovery += other.power_cuts_in_recovery;
        self.failed_writes += other.failed_writes;
        self.failed_syncs += other.failed_syncs;
        self.short_writes += other.short_writes;
        self.full_disks += other.full_disks;
        self.refused_full += other.refused_full;
        self.clock_steps += other.clock_steps;
        self.clock_stalls += other.clock_stalls;
        self.second_openings += other.second_openings;
        self.flips += other.flips;
        self.lost_answers += other.lost_answers;
        self.snapshots += other.snapshots;
        self.moved += other.moved;
        self.released += other.released;
    }
}
