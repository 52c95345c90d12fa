//! Which instants a schedule names: fields, names, intervals, and what happens where a zone's clock is changed.
#![allow(clippy::unwrap_used, reason = "a test that meets the unexpected has failed")]

use onward_core::{ErrorKind, ScheduleWhen, Ticks, Timestamp};
use onward_proves::proves;
use proptest::prelude::*;

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn cron(line: &str, zone: &str) -> Ticks {
    ScheduleWhen::Cron { line: line.into(), zone: zone.into() }.ticks().unwrap()
}

/// The next ticks after a time, as text, without seconds where there are none.
fn next(line: &str, zone: &str, after: &str, count: usize) -> Vec<String> {
    cron(line, zone).iter_after(at(after)).take(count).map(|tick| tick.to_string()).collect()
}

/// A line in a zone: after this time come exactly these ticks, in UTC.
struct Row(&'static str, &'static str, &'static [&'static str]);

fn holds(zone: &str, rows: &[Row]) {
    for Row(line, after, ticks) in rows {
        assert_eq!(next(line, zone, after, ticks.len()), *ticks, "`{line}` in {zone} after {after}");
    }
}

#[test]
#[proves("B6")]
fn fields_mean_what_cron_means_by_them() {
    holds(
        "UTC",
        &[
            Row(
                "*/20 9 * * *",
                "2024-03-15T08:00:00Z",
                &[
                    "2024-03-15T09:00:00Z",
                    "2024-03-15T09:20:00Z",
                    "2024-03-15T09:40:00Z",
                    "2024-03-16T09:00:00Z",
                ],
            ),
            Row(
                "0 8-10/2,23 * * *",
                "2024-03-15T08:00:00Z",
                &["2024-03-15T10:00:00Z", "2024-03-15T23:00:00Z", "2024-03-16T08:00:00Z"],
            ),
            Row(
                "0 0 * JAN,jul MON-wed",
                "2024-01-29T12:00:00Z",
                &["2024-01-30T00:00:00Z", "2024-01-31T00:00:00Z", "2024-07-01T00:00:00Z"],
            ),
            // Either of the two days is enough.
            Row(
                "0 0 13 * FRI",
                "2024-09-01T00:00:00Z",
                &[
                    "2024-09-06T00:00:00Z",
                    "2024-09-13T00:00:00Z",
                    "2024-09-20T00:00:00Z",
                    "2024-09-27T00:00:00Z",
                    "2024-10-04T00:00:00Z",
                    "2024-10-11T00:00:00Z",
                    "2024-10-13T00:00:00Z",
                ],
            ),
            Row("15 30 9 * * *", "2024-03-15T08:00:00Z", &["2024-03-15T09:30:15Z", "2024-03-16T09:30:15Z"]),
            Row("0 0 29 2 *", "2024-03-01T00:00:00Z", &["2028-02-29T00:00:00Z"]),
            Row("0 12 L * *", "2024-02-10T00:00:00Z", &["2024-02-29T12:00:00Z", "2024-03-31T12:00:00Z"]),
            // 15 June 2024 is a Saturday.
            Row("0 12 15W 6 *", "2024-06-01T00:00:00Z", &["2024-06-14T12:00:00Z"]),
            Row("0 12 * * FRI#2", "2024-03-01T00:00:00Z", &["2024-03-08T12:00:00Z", "2024-04-12T12:00:00Z"]),
            Row("0 12 * * FRI#L", "2024-03-01T00:00:00Z", &["2024-03-29T12:00:00Z", "2024-04-26T12:00:00Z"]),
            Row("0 0 * * 7", "2024-03-15T00:00:00Z", &["2024-03-17T00:00:00Z"]),
            Row("@daily", "2024-03-15T00:00:00Z", &["2024-03-16T00:00:00Z"]),
            Row("@hourly", "2024-03-15T00:00:00Z", &["2024-03-15T01:00:00Z"]),
            Row("@weekly", "2024-03-15T00:00:00Z", &["2024-03-17T00:00:00Z"]),
            Row("@monthly", "2024-03-15T00:00:00Z", &["2024-04-01T00:00:00Z"]),
            Row("@yearly", "2024-03-15T00:00:00Z", &["2025-01-01T00:00:00Z"]),
        ],
    );
}

#[test]
#[proves("T18")]
fn daylight_saving_in_zurich() {
    holds(
        "Europe/Zurich",
        &[
            // 31 March 2024: 02:00 to 03:00 does not exist.
            Row("30 2 * * *", "2024-03-30T12:00:00Z", &["2024-03-31T01:00:00Z", "2024-04-01T00:30:00Z"]),
            Row("*/20 2 * * *", "2024-03-30T12:00:00Z", &["2024-03-31T01:00:00Z", "2024-04-01T00:00:00Z"]),
            Row("0 2,3 * * *", "2024-03-30T12:00:00Z", &["2024-03-31T01:00:00Z", "2024-04-01T00:00:00Z"]),
            Row("30 * * * *", "2024-03-31T00:00:00Z", &["2024-03-31T00:30:00Z", "2024-03-31T01:30:00Z"]),
            // 27 October 2024: 02:00 to 03:00 exists twice.
            Row("30 2 * * *", "2024-10-26T12:00:00Z", &["2024-10-27T00:30:00Z", "2024-10-28T01:30:00Z"]),
            Row("0 3 * * *", "2024-10-26T12:00:00Z", &["2024-10-27T02:00:00Z", "2024-10-28T02:00:00Z"]),
            Row(
                "30 * * * *",
                "2024-10-27T00:00:00Z",
                &["2024-10-27T00:30:00Z", "2024-10-27T01:30:00Z", "2024-10-27T02:30:00Z"],
            ),
            // Asked in the second pass of the hour, the first is over.
            Row("30 2 * * *", "2024-10-27T01:10:00Z", &["2024-10-28T01:30:00Z"]),
        ],
    );
}

#[test]
#[proves("T18")]
fn daylight_saving_in_new_york() {
    holds(
        "America/New_York",
        &[
            Row("15 2 * * *", "2024-03-09T12:00:00Z", &["2024-03-10T07:00:00Z", "2024-03-11T06:15:00Z"]),
            Row("59 1 * * *", "2024-03-09T12:00:00Z", &["2024-03-10T06:59:00Z", "2024-03-11T05:59:00Z"]),
            Row("30 1 * * *", "2024-11-02T12:00:00Z", &["2024-11-03T05:30:00Z", "2024-11-04T06:30:00Z"]),
            Row(
                "*/30 * * * *",
                "2024-11-03T05:00:00Z",
                &[
                    "2024-11-03T05:30:00Z",
                    "2024-11-03T06:00:00Z",
                    "2024-11-03T06:30:00Z",
                    "2024-11-03T07:00:00Z",
                ],
            ),
        ],
    );
}

#[test]
#[proves("T18")]
fn a_half_hour_shift_on_lord_howe() {
    holds(
        "Australia/Lord_Howe",
        &[
            // 6 October 2024: 02:00 to 02:30 does not exist.
            Row("15 2 * * *", "2024-10-05T00:00:00Z", &["2024-10-05T15:30:00Z", "2024-10-06T15:15:00Z"]),
            Row("45 2 * * *", "2024-10-05T00:00:00Z", &["2024-10-05T15:45:00Z", "2024-10-06T15:45:00Z"]),
            // 7 April 2024: 01:30 to 02:00 exists twice.
            Row("45 1 * * *", "2024-04-06T00:00:00Z", &["2024-04-06T14:45:00Z", "2024-04-07T15:15:00Z"]),
            Row("15 1 * * *", "2024-04-06T00:00:00Z", &["2024-04-06T14:15:00Z", "2024-04-07T14:45:00Z"]),
            Row(
                "*/15 * * * *",
                "2024-04-06T14:30:00Z",
                &["2024-04-06T14:45:00Z", "2024-04-06T15:00:00Z", "2024-04-06T15:15:00Z"],
            ),
        ],
    );
}

#[test]
#[proves("T18")]
fn a_midnight_that_does_not_exist_in_santiago() {
    holds(
        "America/Santiago",
        &[
            Row("0 0 * * *", "2024-09-07T12:00:00Z", &["2024-09-08T04:00:00Z", "2024-09-09T03:00:00Z"]),
            Row("@daily", "2024-09-07T12:00:00Z", &["2024-09-08T04:00:00Z", "2024-09-09T03:00:00Z"]),
            Row("0 0 8 9 *", "2024-09-07T12:00:00Z", &["2024-09-08T04:00:00Z", "2025-09-08T03:00:00Z"]),
            // The evening of 6 April 2024 has the hour of 23 twice.
            Row("30 23 * * *", "2024-04-06T12:00:00Z", &["2024-04-07T02:30:00Z", "2024-04-08T03:30:00Z"]),
        ],
    );
}

#[test]
#[proves("T18")]
fn daylight_saving_in_the_south_in_auckland() {
    holds(
        "Pacific/Auckland",
        &[
            Row("30 2 * * *", "2024-09-28T00:00:00Z", &["2024-09-28T14:00:00Z", "2024-09-29T13:30:00Z"]),
            Row("30 2 * * *", "2024-04-06T00:00:00Z", &["2024-04-06T13:30:00Z", "2024-04-07T14:30:00Z"]),
        ],
    );
}

#[test]
fn a_zone_without_daylight_saving_has_every_day_alike() {
    holds(
        "Asia/Kolkata",
        &[Row("30 9 * * *", "2024-03-15T00:00:00Z", &["2024-03-15T04:00:00Z", "2024-03-16T04:00:00Z"])],
    );
}

#[test]
fn an_interval_counts_from_its_first_tick_and_knows_no_zone() {
    let every = ScheduleWhen::Every { every_ms: 90_000, first: at("2024-03-31T00:00:00.5Z") };
    let ticks = every.ticks().unwrap();
    assert_eq!(ticks.after(at("2023-01-01T00:00:00Z")), Some(at("2024-03-31T00:00:00.5Z")));
    assert_eq!(ticks.at_or_before(at("2023-01-01T00:00:00Z")), None);
    assert_eq!(ticks.after(at("2024-03-31T00:00:00.5Z")), Some(at("2024-03-31T00:01:30.5Z")));
    assert_eq!(ticks.at_or_before(at("2024-03-31T00:01:30.4Z")), Some(at("2024-03-31T00:00:00.5Z")));
    let (from, to) = (at("2024-03-31T00:00:00.5Z"), at("2024-04-01T00:00:00.5Z"));
    assert_eq!(ticks.count(from, to, u64::MAX), 960);
    assert_eq!(ticks.count(from, to, 7), 7);
    assert_eq!(ticks.latest(from, to, 2), [at("2024-03-31T23:58:30.5Z"), to]);
}

#[test]
fn the_latest_ticks_are_found_from_the_end_and_not_beyond_the_start() {
    let ticks = cron("0 0 1 1 *", "UTC");
    let latest = ticks.latest(at("2020-01-01T00:00:00Z"), at("2024-06-01T00:00:00Z"), 3);
    assert_eq!(latest, [at("2022-01-01T00:00:00Z"), at("2023-01-01T00:00:00Z"), at("2024-01-01T00:00:00Z")]);
    let few = ticks.latest(at("2022-06-01T00:00:00Z"), at("2024-01-01T00:00:00Z"), 9);
    assert_eq!(few, [at("2023-01-01T00:00:00Z"), at("2024-01-01T00:00:00Z")]);
}

#[test]
fn what_can_not_be_read_names_the_field_and_the_mend() {
    let refused = |when: ScheduleWhen, place: &str| {
        let error = when.ticks().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().contains(place), "{error}");
    };
    let lines = [
        "",
        "* * * *",
        "60 * * * *",
        "* * * * * * *",
        "@reboot",
        "@",
        "* * * FOO *",
        "a\nb c d e f",
        "*/0 * * * *",
        "5-1 * * * *",
    ];
    for line in lines.iter().map(|line| (*line).to_owned()).chain(["*,".repeat(300)]) {
        refused(ScheduleWhen::Cron { line: line.as_str().into(), zone: "UTC".into() }, "`line`");
    }
    refused(ScheduleWhen::Cron { line: "@daily".into(), zone: "Europe/Atlantis".into() }, "`zone`");
    refused(ScheduleWhen::Every { every_ms: 999, first: at("2024-01-01T00:00:00Z") }, "`every_ms`");
    refused(ScheduleWhen::Every { every_ms: u64::MAX, first: at("2024-01-01T00:00:00Z") }, "`every_ms`");
}

#[test]
fn a_day_that_no_year_has_is_never() {
    assert_eq!(cron("0 0 30 2 *", "Europe/Zurich").after(at("2024-01-01T00:00:00Z")), None);
    assert_eq!(cron("0 0 30 2 *", "Europe/Zurich").at_or_before(at("2024-01-01T00:00:00Z")), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Going forward and going back name the same ticks, whatever the zone's clock does on the way.
    #[test]
    #[proves("T18")]
    fn back_and_forth_name_the_same_ticks(
        line in prop::sample::select(vec!["*/7 * * * *", "30 2 * * *", "0 */2 * * *", "15,45 1-3 * * *", "0 0 * * *", "17 3 * * SUN", "* 2 * * *"]),
        zone in prop::sample::select(vec!["Europe/Zurich", "America/New_York", "Australia/Lord_Howe", "America/Santiago", "Pacific/Auckland", "Africa/Casablanca", "UTC"]),
        start in 1_300_000_000i64..2_200_000_000,
    ) {
        let ticks = cron(line, zone);
        let mut before = Timestamp::from_micros(start * 1_000_000);
        for tick in ticks.iter_after(before).take(40) {
            prop_assert!(tick > before);
            prop_assert_eq!(ticks.at_or_before(tick), Some(tick));
            let just_before = Timestamp::from_micros(tick.as_micros() - 1);
            prop_assert!(ticks.at_or_before(just_before).is_none_or(|last| last <= before));
            before = tick;
        }
    }
}
