//! The history checker: an honest history passes, and each kind of fault is found where it was planted.

#![allow(clippy::unwrap_used, reason = "a test may")]

mod facts;
mod story;

use std::time::Duration;

use onward_core::{Books, RecordKey};
use onward_proves::proves;
use onward_sim::history::{
    Answer, Contract, FaultKind, History, How, Left, RecordExpected, Sent, Settled, What, check,
};
use story::{LEASE, Story, id, inlet};

#[test]
#[proves("AD13", "LOG24")]
fn an_honest_history_with_retries_crashes_and_lost_answers_passes() {
    let mut story = Story::new();
    story.send("a", Answer::Ok).deliver("a", 1, 1).settle("a", 1, How::Retry, Answer::Ok);
    story.wait(5).deliver("a", 2, 2).wait(11).deliver("a", 3, 3).ack("a", 3);
    story.send("b", Answer::Unknown).restart(true).deliver("b", 4, 1).restart(true).deliver("b", 5, 1);
    story.settle("b", 5, How::Ack, Answer::Unknown).wait(11).deliver("b", 6, 2).ack("b", 6);
    story.send("c", Answer::Unknown).restart(true).send("d", Answer::Refused);
    story.send("e", Answer::Ok).deliver("e", 7, 1).settle("e", 7, How::Reject, Answer::Ok);
    story.left = Some(vec![("e", Left::Dead)]);
    story.put(1, RecordExpected::Absent, 5).put(2, RecordExpected::Revision(5), 6);
    story.clean();
}

#[test]
#[proves("AD13", "LOG1")]
fn an_accepted_message_that_is_nowhere_is_lost_and_one_left_over_is_stuck() {
    let mut story = Story::new();
    story.send("a", Answer::Ok);
    story.only(FaultKind::Lost);
    story.left = Some(vec![("a", Left::Unfinished)]);
    story.only(FaultKind::Stuck);
    story.left = None;
    story.clean();
}

#[test]
#[proves("AD13")]
fn a_message_held_by_two_at_once_is_a_duplicate_and_one_whose_lease_ended_is_not() {
    let mut story = Story::new();
    story.send("a", Answer::Ok).deliver("a", 1, 1).wait(9).deliver("a", 2, 2).ack("a", 2);
    story.only(FaultKind::Duplicated);
    let mut story = Story::new();
    story.send("a", Answer::Ok).deliver("a", 1, 1).wait(10).deliver("a", 2, 2).ack("a", 2);
    story.clean();
}

#[test]
#[proves("AD13", "LOG18")]
fn a_lease_has_its_full_term_again_after_a_restart() {
    let mut story = Story::new();
    story.send("a", Answer::Ok).deliver("a", 1, 1).restart(false).wait(9).deliver("a", 2, 2).ack("a", 2);
    story.only(FaultKind::Duplicated);
    story.survive = false;
    story.clean();
}

#[test]
#[proves("AD13", "LOG17")]
fn an_id_accepted_twice_within_its_window_is_a_duplicate() {
    let mut story = Story::new();
    story.send("a", Answer::Ok).deliver("a", 1, 1).ack("a", 1).wait(60).send("a", Answer::Ok);
    story.deliver("a", 2, 1).ack("a", 2);
    assert!(story.kinds().contains(&FaultKind::Duplicated));
    let mut story = Story::new();
    story.send("a", Answer::Ok).deliver("a", 1, 1).ack("a", 1).wait(601).send("a", Answer::Ok);
    story.deliver("a", 2, 1).ack("a", 2);
    story.clean();
}

#[test]
#[proves("AD13")]
fn what_was_never_sent_or_refused_or_sent_otherwise_is_a_phantom() {
    let mut story = Story::new();
    story.deliver("a", 1, 1).ack("a", 1);
    story.only(FaultKind::Phantom);
    let mut story = Story::new();
    story.send("a", Answer::Refused).deliver("a", 1, 1).ack("a", 1);
    story.only(FaultKind::Phantom);
    let mut story = Story::new();
    story.send("a", Answer::Ok).deliver_content("a", 1, 1, 2).ack("a", 1);
    story.only(FaultKind::Phantom);
}

#[test]
#[proves("AD13")]
fn a_later_message_of_a_key_before_the_earlier_one_is_gone_is_reordered() {
    let mut story = Story::new();
    story.rules.ordered = true;
    story.send("a", Answer::Ok).send("b", Answer::Ok);
    story.deliver("b", 1, 1).ack("b", 1).deliver("a", 2, 1).ack("a", 2);
    story.only(FaultKind::Reordered);
    story.rules.ordered = false;
    story.clean();
}

#[test]
#[proves("AD13", "LOG19")]
fn a_lease_that_ended_settles_nothing() {
    for how in [How::Ack, How::Retry] {
        let mut story = Story::new();
        story.send("a", Answer::Ok).deliver("a", 1, 1).wait(11).deliver("a", 2, 2).settle(
            "a",
            1,
            how,
            Answer::Ok,
        );
        story.settle("a", 2, How::Ack, Answer::Unknown);
        assert!(story.kinds().contains(&FaultKind::StaleSettle), "{how:?}");
    }
    let mut story = Story::new();
    story.send("a", Answer::Ok).deliver("a", 1, 1).wait(11).ack("a", 1);
    story.only(FaultKind::StaleSettle);
    let mut story = Story::new();
    story.send("a", Answer::Ok).deliver("a", 1, 1).add(3, Answer::Ok, None, What::EndProcess { process: 2 });
    story.ack("a", 1);
    story.only(FaultKind::StaleSettle);
}

#[test]
#[proves("AD13", "LOG19")]
fn a_lease_that_ended_is_not_extended_and_has_one_outcome() {
    let mut story = Story::new();
    story.send("a", Answer::Ok).deliver("a", 1, 1).wait(11).deliver("a", 2, 2);
    story.add(2, Answer::Ok, None, What::Extend { token: Story::token("a", 1), lease: LEASE }).ack("a", 2);
    story.only(FaultKind::StaleSettle);
    let mut story = Story::new();
    story.send("a", Answer::Ok).deliver("a", 1, 1).ack("a", 1).settle("a", 1, How::Release, Answer::Ok);
    story.only(FaultKind::StaleSettle);
}

#[test]
#[proves("AD13", "LOG17")]
fn attempts_beyond_the_maximum_invented_or_forgotten_are_found() {
    let mut story = Story::new();
    story.send("a", Answer::Ok).deliver("a", 1, 1);
    story.wait(10).deliver("a", 2, 2).wait(10).deliver("a", 3, 3).wait(10).deliver("a", 4, 4).ack("a", 4);
    story.only(FaultKind::Attempts);
    let mut story = Story::new();
    story.send("a", Answer::Ok).deliver("a", 1, 2).ack("a", 1);
    story.only(FaultKind::Attempts);
    let mut story = Story::new();
    story.send("a", Answer::Ok).deliver("a", 1, 1).restart(false).wait(10).deliver("a", 2, 1).ack("a", 2);
    story.only(FaultKind::AttemptForgotten);
}

#[test]
#[proves("AD13", "LOG18")]
fn what_comes_before_it_is_due_or_after_its_expiry_is_found() {
    let mut story = Story::new();
    let sent = Sent { not_before: Duration::from_secs(60), ..Story::sent("a") };
    story.add(1, Answer::Ok, None, What::Enqueue(sent)).wait(59).deliver("a", 1, 1).ack("a", 1);
    story.only(FaultKind::Early);
    let mut story = Story::new();
    story.send("a", Answer::Ok).deliver("a", 1, 1).settle("a", 1, How::Retry, Answer::Ok).wait(4);
    story.deliver("a", 2, 2).ack("a", 2);
    story.only(FaultKind::Early);
    let mut story = Story::new();
    let sent = Sent { not_after: Some(Duration::from_secs(60)), ..Story::sent("a") };
    story.add(1, Answer::Ok, None, What::Enqueue(sent)).wait(60).deliver("a", 1, 1).ack("a", 1);
    story.only(FaultKind::Expired);
}

#[test]
#[proves("AD13")]
fn what_comes_or_stays_after_it_was_settled_is_found() {
    for how in [How::Ack, How::Reject] {
        let mut story = Story::new();
        story
            .send("a", Answer::Ok)
            .deliver("a", 1, 1)
            .settle("a", 1, how, Answer::Ok)
            .wait(20)
            .deliver("a", 2, 2);
        story.ack("a", 2);
        story.only(FaultKind::AfterSettled);
    }
    let mut story = Story::new();
    story.send("a", Answer::Ok).deliver("a", 1, 1).ack("a", 1);
    story.left = Some(vec![("a", Left::Dead)]);
    story.only(FaultKind::AfterSettled);
}

#[test]
#[proves("AD13", "LOG2")]
fn half_a_commit_is_found() {
    let mut story = Story::new();
    story.send("a", Answer::Ok).deliver("a", 1, 1);
    let settled = Settled {
        token: Story::token("a", 1),
        how: How::Ack,
        not_before: Duration::ZERO,
        dead: false,
        already: false,
    };
    story.add(2, Answer::Unknown, Some(1), What::Settle(settled));
    story.add(2, Answer::Unknown, Some(1), What::Enqueue(Story::sent("b"))).restart(true);
    story.only(FaultKind::Torn);
    story.deliver("b", 2, 1).ack("b", 2);
    story.clean();
}

#[test]
#[proves("AD13")]
fn books_that_do_not_balance_or_do_not_say_what_happened_are_found() {
    let mut story = Story::new();
    story.send("a", Answer::Ok).deliver("a", 1, 1).ack("a", 1);
    let count = |books| What::Count { inlet: inlet(), books };
    story.add(1, Answer::Ok, None, count(Books { accepted: 1, done: 1, ..Books::default() }));
    story.clean();
    story.add(1, Answer::Ok, None, count(Books { accepted: 1, ..Books::default() }));
    story.only(FaultKind::Books);
    let mut story = Story::new();
    story.send("a", Answer::Ok).deliver("a", 1, 1).ack("a", 1);
    story.add(1, Answer::Ok, None, count(Books::default()));
    story.only(FaultKind::Books);
}

#[test]
#[proves("AD13")]
fn a_lost_update_of_a_record_is_found() {
    let mut story = Story::new();
    story.put(1, RecordExpected::Absent, 5).put(2, RecordExpected::Revision(5), 6);
    story.put(3, RecordExpected::Revision(5), 7);
    story.only(FaultKind::Record);
    let mut story = Story::new();
    let read = |found| What::GetRecord { key: RecordKey::try_from("a").unwrap(), found };
    story.put(1, RecordExpected::Any, 5).put(2, RecordExpected::Any, 6);
    story.add(1, Answer::Ok, None, read(Some((2, 6))));
    story.clean();
    story.add(1, Answer::Ok, None, read(Some((1, 5))));
    story.only(FaultKind::Record);
}

#[test]
#[proves("AD13")]
fn faults_are_counted_per_thousand_accepted_and_shown_with_their_messages() {
    let mut story = Story::new();
    story.send("lost-1", Answer::Ok).send("b", Answer::Ok).deliver("b", 1, 1).ack("b", 1);
    let left = Some(Default::default());
    let report = check(&History { left, ..story.recorder.history(Contract::default()) });
    assert_eq!((report.count(FaultKind::Lost), report.rate(FaultKind::Lost)), (1, 500.0));
    assert_eq!(report.faults()[0].messages, [id("lost-1")]);
    assert!(report.to_string().contains("lost-1"));
}
