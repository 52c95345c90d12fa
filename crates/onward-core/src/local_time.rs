//! Local times as the cron library takes them: of a clock without a zone.

use croner::{CivilDateTime, CronDateTime, Resolution, Weekday, errors::CronError};
use jiff::tz::TimeZone;
use std::cmp::Ordering;

/// A local time without a zone: seconds since 1970-01-01T00:00:00 of that clock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Local(pub(crate) i64);

impl Local {
    fn civil(self) -> jiff::civil::DateTime {
        let instant = jiff::Timestamp::from_second(self.0).unwrap_or(if self.0 < 0 {
            jiff::Timestamp::MIN
        } else {
            jiff::Timestamp::MAX
        });
        TimeZone::UTC.to_datetime(instant)
    }
}

impl CronDateTime for Local {
    fn to_civil(&self) -> CivilDateTime {
        let at = self.civil();
        let number = |part: i8| part.unsigned_abs().into();
        let (month, day) = (number(at.month()), number(at.day()));
        let (hour, minute, second) = (number(at.hour()), number(at.minute()), number(at.second()));
        CivilDateTime::from_ymd_hms_opt(at.year().into(), month, day, hour, minute, second)
            .expect("a date and time of one calendar is one of the other")
    }

    fn civil_weekday(&self) -> Weekday {
        match self.civil().weekday() {
            jiff::civil::Weekday::Sunday => Weekday::Sunday,
            jiff::civil::Weekday::Monday => Weekday::Monday,
            jiff::civil::Weekday::Tuesday => Weekday::Tuesday,
            jiff::civil::Weekday::Wednesday => Weekday::Wednesday,
            jiff::civil::Weekday::Thursday => Weekday::Thursday,
            jiff::civil::Weekday::Friday => Weekday::Friday,
            jiff::civil::Weekday::Saturday => Weekday::Saturday,
        }
    }

    fn resolve_civil(&self, civil: CivilDateTime) -> std::result::Result<Resolution<Self>, CronError> {
        let year = i16::try_from(civil.year()).map_err(|_| CronError::InvalidDate)?;
        let part = |part: u32| i8::try_from(part).map_err(|_| CronError::InvalidDate);
        let (month, day) = (part(civil.month())?, part(civil.day())?);
        let (hour, minute, second) = (part(civil.hour())?, part(civil.minute())?, part(civil.second())?);
        let at = jiff::civil::DateTime::new(year, month, day, hour, minute, second, 0);
        let instant = at.and_then(|at| TimeZone::UTC.to_timestamp(at)).map_err(|_| CronError::InvalidDate)?;
        Ok(Resolution::Single(Self(instant.as_second())))
    }

    fn checked_add_seconds(&self, seconds: i64) -> Option<Self> {
        self.0.checked_add(seconds).map(Self)
    }

    fn cmp_instant(&self, other: &Self) -> Ordering {
        self.0.cmp(&other.0)
    }
}
