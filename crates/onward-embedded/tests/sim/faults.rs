//! What breaks, and when.

use onward_core::{Error, ErrorKind};
use onward_embedded::CareReport;
use onward_sim::{Random, SimDisk, Step};

use super::counters::Counters;
use super::run::CALLS;

/// A planned fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The process is killed; what the operating system has, it keeps.
    Kill,
    /// The engine is closed in good order.
    Close,
    /// The power goes: everything unsynced is lost.
    PowerCut,
    /// The power goes: of what is unsynced, something is kept, lost or torn.
    TornPowerCut,
    /// The power goes in the middle of one of the next steps of the disk.
    PowerCutAtStep,
    /// The power goes while the folder is being opened, several times over.
    PowerCutInRecovery,
    FailWrite,
    FailSync,
    /// A write that takes only a part, and one that is interrupted.
    ShortWrite,
    DiskFull,
    ClockForward,
    ClockBack,
    ClockStall,
    /// Somebody else opens the folder.
    SecondOpening,
    /// The power goes, and bits above what was synced are turned over.
    FlipUnsynced,
    /// The power goes while a snapshot is written, mostly.
    PowerCutInCare,
    /// The power goes while a segment is given back.
    PowerCutInRelease,
    /// The power goes while what lives long is being copied forward.
    PowerCutInForwarding,
}

/// Each kind, and how often it is drawn: more often where what it waits for seldom comes.
const KINDS: [(Kind, u64); 18] = [
    (Kind::Kill, 1),
    (Kind::Close, 1),
    (Kind::PowerCut, 1),
    (Kind::TornPowerCut, 1),
    (Kind::PowerCutAtStep, 1),
    (Kind::PowerCutInRecovery, 1),
    (Kind::FailWrite, 1),
    (Kind::FailSync, 1),
    (Kind::ShortWrite, 1),
    (Kind::DiskFull, 1),
    (Kind::ClockForward, 1),
    (Kind::ClockBack, 1),
    (Kind::ClockStall, 1),
    (Kind::SecondOpening, 1),
    (Kind::FlipUnsynced, 1),
    (Kind::PowerCutInCare, 1),
    (Kind::PowerCutInRelease, 7),
    (Kind::PowerCutInForwarding, 5),
];

pub(super) const HOUR: i64 = 3_600_000_000;
/// Turns within which the engine notices free space.
pub(super) const NOTICED_WITHIN_TURNS: u64 = 40;
/// Faults that are planned for one run, at least and at most.
const FAULTS: (u64, u64) = (3, 7);
/// Faults that happen in every run, whatever became of those that were planned.
pub(crate) const FAULTS_MIN: u64 = 3;
/// Steps of the folder's care before one of which the power goes.
pub(super) const CARE_STEPS: u64 = 12;

impl Kind {
    fn draw(random: &mut Random) -> Kind {
        let mut place = random.below(KINDS.iter().map(|(_, weight)| weight).sum());
        let here = |(_, weight): &&(Kind, u64)| match place.checked_sub(*weight) {
            Some(left) => {
                place = left;
                false
            }
            None => true,
        };
        KINDS.iter().find(here).expect("a place within the weights").0
    }
}

/// The faults of one run, and what is broken now.
#[derive(Debug)]
pub(crate) struct Faults {
    /// With the number of calls after which each strikes, soonest last.
    pub(super) planned: Vec<(u64, Kind)>,
    pub(crate) counters: Counters,
    /// The disk is full until so many calls were made.
    pub(super) full_until: Option<u64>,
    /// By then the engine has noticed that there is space again.
    pub(super) noticed_by: u64,
    /// The power goes at a step of the disk that was named.
    pub(super) power_goes: bool,
    /// A write or a sync was made to fail.
    pub(crate) breaks: bool,
    /// The engine is being closed.
    pub(crate) closing: bool,
    /// So many openings are cut short.
    pub(crate) cut_openings: u64,
    /// So many steps into the folder's care the power goes, or behind its giving a segment back.
    pub(super) care_cut: Option<u64>,
    pub(super) release_cut: Option<u64>,
    /// It goes so many steps after something was copied forward.
    pub(super) forwarding_cut: Option<u64>,
    /// That is about to happen.
    pub(super) forwarding: bool,
    pub(super) turns: u64,
}

impl Faults {
    pub(crate) fn plan(random: &mut Random) -> Faults {
        let count = FAULTS.0 + random.below(FAULTS.1 - FAULTS.0 + 1);
        let mut planned: Vec<(u64, Kind)> =
            (0..count).map(|_| (5 + random.below(CALLS - 10), Kind::draw(random))).collect();
        planned.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
        let counters = Counters::default();
        Faults {
            planned,
            counters,
            full_until: None,
            noticed_by: 0,
            power_goes: false,
            breaks: false,
            closing: false,
            cut_openings: 0,
            care_cut: None,
            release_cut: None,
            forwarding_cut: None,
            forwarding: false,
            turns: 0,
        }
    }

    pub(crate) fn touch_the_clock(&self) -> bool {
        let clock = [Kind::ClockForward, Kind::ClockBack, Kind::ClockStall];
        self.planned.iter().any(|(_, kind)| clock.contains(kind))
    }

    pub(crate) fn is_due(&self, calls: u64) -> bool {
        self.planned.last().is_some_and(|(at, _)| *at <= calls)
    }

    /// Whether some are to come, or are under way in a run that has had too few yet.
    pub(crate) fn are_to_come(&self) -> bool {
        !self.planned.is_empty() || self.counters.faults() < FAULTS_MIN
    }

    /// Plans one more where those that were planned came to too little.
    pub(crate) fn have_enough(&mut self, calls: u64, random: &mut Random) {
        if calls >= CALLS && self.planned.is_empty() && self.counters.faults() < FAULTS_MIN {
            let kinds = [Kind::Kill, Kind::PowerCut, Kind::TornPowerCut, Kind::Close];
            self.planned.push((calls, kinds[random.below(kinds.len() as u64) as usize]));
        }
    }

    /// Lets the power go within the folder's care that comes now, where that was planned; answers whether.
    pub(crate) fn cut_care(&mut self, disk: &SimDisk) -> bool {
        let free = !self.power_goes && !self.forwarding && !disk.is_off();
        match (self.care_cut, self.release_cut) {
            (Some(steps), _) if free => disk.stop_at(disk.step_count() + 1 + steps),
            (None, Some(behind)) if free => disk.stop_when(gives_back, behind),
            _ => return false,
        }
        true
    }

    /// Lets the power go soon after something was copied forward, where that was planned.
    pub(crate) fn cut_forwarding(&mut self, report: &CareReport, disk: &SimDisk) {
        let free = report.moved > 0 && !self.power_goes && !disk.is_off();
        if let Some(steps) = self.forwarding_cut.take_if(|_| free) {
            disk.stop_at(disk.step_count() + 1 + steps);
            (self.power_goes, self.forwarding) = (true, true);
        }
    }

    /// Whether something that is broken explains an error.
    pub(crate) fn explain(&self, error: &Error) -> bool {
        match error.kind() {
            // The engine notices free space the next time that it asks for some.
            ErrorKind::Full => self.full_until.is_some() || self.turns < self.noticed_by,
            ErrorKind::Unavailable => self.breaks || self.power_goes || self.full_until.is_some(),
            ErrorKind::Poisoned => self.breaks || self.power_goes,
            ErrorKind::Closed => self.closing,
            _ => false,
        }
    }

    /// Nothing is broken from now on.
    pub(crate) fn over(&mut self) {
        self.planned.clear();
        (self.care_cut, self.release_cut) = (None, None);
        (self.forwarding_cut, self.forwarding) = (None, false);
        (self.full_until, self.power_goes, self.breaks, self.cut_openings) = (None, false, false, 0);
    }
}

/// Whether a step of the folder's care gives a segment back: to the stock, or for good.
fn gives_back(step: &Step) -> bool {
    matches!(step.what, "rename" | "delete") && step.file.ends_with(".seg")
}
