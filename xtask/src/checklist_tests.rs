//! Tests of the join of statements, claims and results.

use super::*;
use crate::conformance::CheckStatus;

fn claim(number: &str, test: &str) -> Claim {
    let (package, target) = ("onward-log".to_owned(), "lib".to_owned());
    Claim { statement: number.parse().unwrap(), package, target, test: test.into(), place: "a.rs:1".into() }
}

fn record(target: &str, test: &str, status: Status) -> Record {
    let package = "onward-log".to_owned();
    Record {
        package,
        target: target.into(),
        test: test.into(),
        status,
        ended_after_seconds: 0.0,
        reason: None,
    }
}

fn standing_of(claims: &[Claim], records: &[Record]) -> Standing {
    let joined = join_tests(claims, records);
    standing(joined.get(&"T1".parse().unwrap()).map_or(&[][..], Vec::as_slice))
}

#[test]
fn a_statement_is_green_only_when_a_claiming_test_ran_and_passed() {
    let claims = [claim("T1", "a::holds")];
    assert_eq!(standing_of(&claims, &[record("lib", "a::holds", Status::Passed)]), Standing::Green);
    assert_eq!(standing_of(&claims, &[record("lib", "a::holds", Status::Skipped)]), Standing::NotRun);
    assert_eq!(standing_of(&claims, &[record("test:x", "a::holds", Status::Passed)]), Standing::NotRun);
    assert_eq!(standing_of(&claims, &[record("lib", "a::holds_more", Status::Passed)]), Standing::NotRun);
    assert_eq!(standing_of(&[], &[]), Standing::None);
}

#[test]
fn one_failed_claiming_test_makes_the_statement_red() {
    let claims = [claim("T1", "a"), claim("T1", "b")];
    let records = [record("lib", "a", Status::Passed), record("lib", "b", Status::Failed)];
    assert_eq!(standing_of(&claims, &records), Standing::Red);
}

#[test]
fn the_cases_made_from_one_test_count_together() {
    let claims = [claim("T1", "a")];
    let records = [record("lib", "a::case_1", Status::Passed), record("lib", "a::case_2", Status::Failed)];
    assert_eq!(standing_of(&claims, &records), Standing::Red);
    assert_eq!(standing_of(&claims, &records[..1]), Standing::Green);
}

#[test]
fn a_conformance_check_counts_for_each_engine_and_a_refusal_shows_nothing() {
    let check =
        Check { check: "c".into(), group: "core".into(), proves: vec!["T1".into()], sentence: String::new() };
    let verdict =
        |engine: &str, status| Verdict { engine: engine.into(), check: "c".into(), status, reason: None };
    let of = |verdicts: &[Verdict]| {
        standing(&join_checks(std::slice::from_ref(&check), verdicts)[&"T1".parse().unwrap()])
    };
    assert_eq!(
        of(&[verdict("memory", CheckStatus::Pass), verdict("x", CheckStatus::Refused)]),
        Standing::Green
    );
    assert_eq!(of(&[verdict("memory", CheckStatus::Pass), verdict("x", CheckStatus::Fail)]), Standing::Red);
    assert_eq!(of(&[verdict("x", CheckStatus::Refused)]), Standing::NotRun);
    assert_eq!(of(&[]), Standing::NotRun);
}

#[test]
fn a_claim_or_choice_of_an_unknown_number_is_found() {
    let statements = Statements::parse("- T1 a\n").unwrap();
    let check = |number: &str| Check {
        check: "c".into(),
        group: "g".into(),
        proves: vec![number.into()],
        sentence: String::new(),
    };
    assert!(report_unknown(&statements, &[claim("T1", "a")], &[check("T1")], None));
    assert!(!report_unknown(&statements, &[claim("T2", "a")], &[], None));
    assert!(!report_unknown(&statements, &[], &[check("nonsense")], None));
    assert!(!report_unknown(&statements, &[], &[], Some(&"T1-T4".parse().unwrap())));
}
