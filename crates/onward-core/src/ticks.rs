//! Schedule arithmetic: which instants a schedule names. Pure: the rules of time zones are built in, nothing is read.

use crate::local_time::Local;
use crate::{CRON_LINE_BYTES_MAX, Error, Result, SCHEDULE_EVERY_MS_MIN, ScheduleWhen, Timestamp};
use croner::{
    Cron,
    errors::CronError,
    parser::{CronParser, Seconds, Year},
};
use jiff::tz::{TimeZone, TimeZoneDatabase};

const SECOND_US: i64 = 1_000_000;

/// Most changes of a zone's clock that one search goes over: some hundred years.
const PIECES_MAX: usize = 400;

/// The instants of a [`ScheduleWhen`], ready to be asked.
///
/// A cron line has five fields (minute, hour, day of month, month, day of week) or six (seconds before them): `*`,
/// lists, ranges, steps, names (`MON`, `JAN`), `L` and `15W` as day of month, `FRI#2` and `FRI#L` as day of week. Of
/// day of month and day of week one is enough when both are given. `@hourly`, `@daily`, `@weekly`, `@monthly` and
/// `@yearly` stand for their lines.
///
/// Where a zone's clock is changed:
/// - When the line's hours are given, a time of day that does not exist runs at the first instant after the gap (once,
///   however many fall into it), and one that exists twice runs once, the first time.
/// - When the hour field begins with `*`, every instant whose local time fits is a tick: `*/15 * * * *` goes on every
///   15 minutes, by elapsed time, through both.
///
/// Intervals go by elapsed time alone and know no zone.
///
/// The rules of the zones are those of the tz database that this version was built with, on every machine: newer
/// rules come with a newer version.
#[derive(Debug, Clone)]
pub struct Ticks(Kind);

#[derive(Debug, Clone)]
enum Kind {
    Every { every_us: i64, first: i64 },
    Cron(Box<ZonedCron>),
}

#[derive(Debug, Clone)]
struct ZonedCron {
    cron: Cron,
    zone: TimeZone,
    /// The hour field begins with `*`: ticks go by elapsed time through changes of the clock.
    any_hour: bool,
}

impl ScheduleWhen {
    /// Reads it.
    ///
    /// # Errors
    /// `Invalid` with the field: a line that can't be read, a zone that isn't known, an interval that is too short.
    pub fn ticks(&self) -> Result<Ticks> {
        match self {
            Self::Every { every_ms, first } => every(*every_ms, *first),
            Self::Cron { line, zone } => {
                let (cron, any_hour) = parse(line)?;
                Ok(Ticks(Kind::Cron(Box::new(ZonedCron { cron, zone: find_zone(zone)?, any_hour }))))
            }
        }
    }
}

fn every(every_ms: u64, first: Timestamp) -> Result<Ticks> {
    let every_us = i64::try_from(every_ms).ok().and_then(|ms| ms.checked_mul(1_000));
    match every_us.filter(|_| every_ms >= SCHEDULE_EVERY_MS_MIN) {
        Some(every_us) => Ok(Ticks(Kind::Every { every_us, first: first.as_micros() })),
        None => Err(Error::invalid(format!("is {every_ms} ms"))
            .at("`every_ms`")
            .mend(format!("use at least {SCHEDULE_EVERY_MS_MIN} ms"))),
    }
}

fn parse(line: &str) -> Result<(Cron, bool)> {
    let wrong = |why: String| {
        Error::invalid(format!("`{}` is no cron line: {why}", line.chars().take(80).collect::<String>()))
            .at("`line`")
            .mend("write `minute hour day month weekday`, as in `30 9 * * MON-FRI`, or `@daily`")
    };
    if line.len() > CRON_LINE_BYTES_MAX || line.chars().any(char::is_control) {
        return Err(wrong(format!("longer than {CRON_LINE_BYTES_MAX} bytes, or with control characters")));
    }
    let parser = CronParser::builder().seconds(Seconds::Optional).year(Year::Disallowed).build();
    let cron = parser.parse(line).map_err(|error| wrong(reason(&error)))?;
    let fields: Vec<&str> = line.split_whitespace().collect();
    let any_hour = match fields[..] {
        [nickname] => nickname.eq_ignore_ascii_case("@hourly"),
        [_, hour, _, _, _] | [_, _, hour, _, _, _] => hour.starts_with('*'),
        _ => return Err(wrong(format!("it has {} fields, not 5 or 6", fields.len()))),
    };
    Ok((cron, any_hour))
}

/// What is wrong with a line, in words.
fn reason(error: &CronError) -> String {
    match error {
        CronError::EmptyPattern => "it is empty".into(),
        CronError::InvalidPattern(why)
        | CronError::IllegalCharacters(why)
        | CronError::ComponentError(why) => why.clone(),
        other => other.to_string(),
    }
}

fn find_zone(zone: &str) -> Result<TimeZone> {
    TimeZoneDatabase::bundled().get(zone).map_err(|_| {
        Error::invalid(format!("`{}` is no time zone", zone.chars().take(80).collect::<String>()))
            .at("`zone`")
            .mend("use an IANA name, as in `Europe/Zurich` or `UTC`")
    })
}

impl Ticks {
    /// The first tick strictly after `time`; `None` when there is none, or none for some hundred years.
    pub fn after(&self, time: Timestamp) -> Option<Timestamp> {
        match &self.0 {
            Kind::Every { every_us, first } => {
                let (every, first, time) =
                    (i128::from(*every_us), i128::from(*first), i128::from(time.as_micros()));
                let steps = (time - first).div_euclid(every) + 1;
                timestamp(first + every * steps.max(0))
            }
            Kind::Cron(cron) => cron.after(time.as_micros().div_euclid(SECOND_US)).and_then(second),
        }
    }

    /// The last tick at or before `time`; `None` when there is none.
    pub fn at_or_before(&self, time: Timestamp) -> Option<Timestamp> {
        match &self.0 {
            Kind::Every { every_us, first } => {
                let (every, first, time) =
                    (i128::from(*every_us), i128::from(*first), i128::from(time.as_micros()));
                let steps = (time - first).div_euclid(every);
                if steps < 0 { None } else { timestamp(first + every * steps) }
            }
            Kind::Cron(cron) => cron.at_or_before(time.as_micros().div_euclid(SECOND_US)).and_then(second),
        }
    }

    /// The latest ticks after `after` and not after `until`, oldest first, at most so many.
    pub fn latest(&self, after: Timestamp, until: Timestamp, most: usize) -> Vec<Timestamp> {
        let mut found = Vec::new();
        let mut before = until;
        while found.len() < most
            && let Some(tick) = self.at_or_before(before).filter(|tick| *tick > after)
        {
            found.push(tick);
            before = Timestamp::from_micros(tick.as_micros().saturating_sub(1));
        }
        found.reverse();
        found
    }

    /// How many ticks are after `after` and not after `until`, counted up to `most`.
    pub fn count(&self, after: Timestamp, until: Timestamp, most: u64) -> u64 {
        if let Kind::Every { every_us, first } = &self.0 {
            let first = i128::from(*first);
            let place = |time: Timestamp| {
                ((i128::from(time.as_micros()) - first).div_euclid(i128::from(*every_us)) + 1).max(0)
            };
            return u64::try_from(place(until) - place(after)).unwrap_or(0).min(most);
        }
        let (mut count, mut at) = (0, after);
        while count < most
            && let Some(tick) = self.after(at).filter(|tick| *tick <= until)
        {
            (count, at) = (count + 1, tick);
        }
        count
    }

    /// A tick by the clock of its zone, as in `2024-03-31T03:00:00+02:00`; an interval's in UTC.
    pub fn local(&self, tick: Timestamp) -> String {
        let offset = |instant| match &self.0 {
            Kind::Every { .. } => jiff::tz::Offset::UTC,
            Kind::Cron(cron) => cron.zone.to_offset(instant),
        };
        match jiff::Timestamp::from_microsecond(tick.as_micros()) {
            Ok(instant) => instant.display_with_offset(offset(instant)).to_string(),
            Err(_) => tick.to_string(),
        }
    }

    /// The ticks strictly after `time`, in order.
    pub fn iter_after(&self, time: Timestamp) -> impl Iterator<Item = Timestamp> + '_ {
        std::iter::successors(self.after(time), |tick| self.after(*tick))
    }
}

fn timestamp(micros: i128) -> Option<Timestamp> {
    i64::try_from(micros).ok().map(Timestamp::from_micros)
}

fn second(second: i64) -> Option<Timestamp> {
    second.checked_mul(SECOND_US).map(Timestamp::from_micros)
}

/// A stretch of time in which a zone's clock has one offset. All numbers are seconds.
#[derive(Debug, Clone, Copy)]
struct Piece {
    /// Local time less UTC.
    offset: i64,
    /// Where it begins, and the offset before; `None` when it has always been so.
    start: Option<(i64, i64)>,
    /// Where the next one begins.
    end: Option<i64>,
}

impl ZonedCron {
    fn piece(&self, at: i64) -> Option<Piece> {
        let instant = jiff::Timestamp::from_second(at).ok()?;
        let offset = i64::from(self.zone.to_offset(instant).seconds());
        let end = self.zone.following(instant).next().map(|change| change.timestamp().as_second());
        Some(Piece { offset, start: self.start(instant), end })
    }

    /// Where the piece of an instant begins, and the offset before.
    fn start(&self, instant: jiff::Timestamp) -> Option<(i64, i64)> {
        // What precedes is strictly before, and the piece may begin with the instant itself.
        let behind = instant.checked_add(jiff::SignedDuration::from_nanos(1)).ok()?;
        let start = self.zone.preceding(behind).next()?.timestamp();
        let before = start.checked_sub(jiff::SignedDuration::from_secs(1)).ok()?;
        Some((start.as_second(), i64::from(self.zone.to_offset(before).seconds())))
    }

    fn after(&self, time: i64) -> Option<i64> {
        let mut from = time.checked_add(1)?;
        for _ in 0..PIECES_MAX {
            let piece = self.piece(from)?;
            if piece.start.is_some_and(|(start, _)| start == from) && self.falls_into_gap(piece) {
                return Some(from);
            }
            let local = self.next_local((from + piece.offset).max(self.first_local(piece)))?;
            let found = local - piece.offset;
            match piece.end.filter(|end| found >= *end) {
                None => return Some(found),
                Some(end) => from = end,
            }
        }
        None
    }

    fn at_or_before(&self, time: i64) -> Option<i64> {
        let mut until = time;
        for _ in 0..PIECES_MAX {
            let piece = self.piece(until)?;
            let first = piece.start.map_or(i64::MIN, |_| self.first_local(piece));
            let found = self.previous_local(until + piece.offset).filter(|local| *local >= first);
            if let Some(local) = found {
                return Some(local - piece.offset);
            }
            let (start, _) = piece.start?;
            if self.falls_into_gap(piece) {
                return Some(start);
            }
            until = start - 1;
        }
        None
    }

    /// The first local time of a piece that is not a repetition of what the piece before had.
    fn first_local(&self, piece: Piece) -> i64 {
        match piece.start {
            Some((start, before)) if !self.any_hour => start + before.max(piece.offset),
            Some((start, _)) => start + piece.offset,
            None => i64::MIN,
        }
    }

    /// Whether the line names a local time that the clock leaves out at the beginning of this piece.
    fn falls_into_gap(&self, piece: Piece) -> bool {
        match piece.start {
            Some((start, before)) if !self.any_hour && before < piece.offset => {
                self.next_local(start + before).is_some_and(|local| local < start + piece.offset)
            }
            _ => false,
        }
    }

    fn next_local(&self, from: i64) -> Option<i64> {
        self.cron.find_next_occurrence(&Local(from), true).ok().map(|found| found.0)
    }

    fn previous_local(&self, until: i64) -> Option<i64> {
        self.cron.find_previous_occurrence(&Local(until), true).ok().map(|found| found.0)
    }
}
