//! Streams: what may be appended, what a truncation leaves, what a crash does.

use super::streams_support::{all, append, append_op, conflict, event, event_of, stream, tags};
use crate::check::{checks, ensure, ensure_eq};
use crate::{Bench, Done, Need::Durable, Need::Has, Stop};
use onward_core::{
    AppendCondition,
    Capability::{Streams, TagConditions},
    EventQuery, EventScope, Expected, Op, Receipt,
};

checks! { group "streams";
    append_expected_revision,
        "Events are appended only where the stream stands as expected: anything, no stream, some event, an exact revision; a conflict says what stands there and appends nothing.",
        [Has(Streams)], ["E1", "E3"];
    append_expected_by_tag_query,
        "Events are appended only while no event that matches a query of types and tags stands behind a position.",
        [Has(Streams), Has(TagConditions)], ["E3"];
    append_same_event_twice,
        "Appending the same events again answers the first receipt as a duplicate and appends nothing; the same id with other content is a conflict.",
        [Has(Streams)], ["E3"];
    concurrent_appends_one_winner,
        "Of many concurrent appends that expect the same revision one happens, and the others are told where the stream stands.",
        [Has(Streams)], ["E3"];
    truncated_events_are_gone,
        "Truncated events are gone from every read; the stream's revisions go on, and it never counts as new again.",
        [Has(Streams)], ["E4"];
    streams_survive_crash,
        "Events, revisions, repeats and truncations are there after a crash.",
        [Has(Streams), Durable], ["E1"];
}

async fn append_expected_revision(b: &mut Bench) -> Done {
    let name = stream("expected");
    let on = |id: &str, expected| append_op(b, &name, &[id], expected);
    conflict(b, on("x", Expected::Exists)?, None, "an append that expects a stream").await?;
    conflict(b, on("x", Expected::Revision(0))?, None, "an append that expects a revision").await?;
    let first = append(b, &name, &["e0", "e1"], Expected::NoStream).await?;
    ensure_eq!(
        (first.first_revision, first.last_revision, first.duplicate),
        (0, 1, false),
        "the first receipt"
    );
    conflict(b, on("x", Expected::NoStream)?, Some(1), "an append that expects no stream").await?;
    conflict(b, on("x", Expected::Revision(0))?, Some(1), "an append on an old revision").await?;
    conflict(b, on("x", Expected::Revision(2))?, Some(1), "an append on a revision to come").await?;
    append(b, &name, &["e2"], Expected::Revision(1)).await?;
    append(b, &name, &["e3"], Expected::Exists).await?;
    let last = append(b, &name, &["e4"], Expected::Any).await?;
    ensure_eq!(last.first_revision, 4, "the revision of the fifth event");
    ensure!(last.position > first.position, "positions went from {} to {}", first.position, last.position);
    ensure_eq!(all(b, EventScope::Stream(name)).await?, ["e0", "e1", "e2", "e3", "e4"], "the stream");
    Ok(())
}

async fn append_expected_by_tag_query(b: &mut Bench) -> Done {
    let tag = format!("course:{}", b.next());
    let condition = |after| {
        let query = EventQuery { types: vec!["check".into()], tags: tags(&[&tag]) };
        Some(AppendCondition { query, after })
    };
    let op = |to: &str, id: &str, with: &[&str], condition| -> onward_core::Result<Op> {
        let events = vec![event_of(b, id, with)?];
        Ok(Op::Append { stream: stream(to), events, expected: Expected::Any, condition })
    };
    let first = match b.op(op("tagged-1", "e1", &[&tag, "other"], condition(None))?).await? {
        Receipt::Appended(appended) => appended.position,
        other => return Err(Stop::Failed(format!("an append answered {other:?}"))),
    };
    conflict(b, op("tagged-2", "e2", &[&tag], condition(None))?, None, "an append against a match").await?;
    b.op(op("tagged-2", "e2", &[&tag], condition(Some(first)))?).await?;
    conflict(b, op("tagged-3", "e3", &[], condition(Some(first)))?, None, "an append against a later match")
        .await?;
    let elsewhere = EventQuery { types: vec!["never".into()], tags: tags(&[&tag]) };
    b.op(op("tagged-3", "e3", &[], Some(AppendCondition { query: elsewhere, after: None }))?).await?;
    // A condition sees the earlier operations of its own commit.
    let tag = format!("course:{}", b.next());
    let query = EventQuery { types: Vec::new(), tags: tags(&[&tag]) };
    let commit = vec![
        op("tagged-4", "e4", &[&tag], None)?,
        op("tagged-5", "e5", &[], Some(AppendCondition { query, after: None }))?,
    ];
    let refused = b.commit(commit).await;
    ensure!(refused.is_err(), "a condition does not see its own commit");
    ensure!(
        all(b, EventScope::Stream(stream("tagged-4"))).await?.is_empty(),
        "a refused commit left an event"
    );
    Ok(())
}

async fn append_same_event_twice(b: &mut Bench) -> Done {
    for (which, expected) in [("twice-1", Expected::NoStream), ("twice-2", Expected::Any)] {
        let name = stream(which);
        let first = append(b, &name, &["e0", "e1"], expected).await?;
        append(b, &name, &["e2"], Expected::Revision(1)).await?;
        let again = append(b, &name, &["e0", "e1"], expected).await?;
        ensure!(again.duplicate, "a repeat is not called one");
        let place = |a: onward_core::Appended| (a.first_revision, a.last_revision, a.position);
        ensure_eq!(place(again), place(first), "the receipt of a repeat");
        let mut other = event(b, "e0")?;
        other.message.data = onward_core::Payload::json("other")?;
        let other = Op::Append { stream: name.clone(), events: vec![other], expected, condition: None };
        conflict(b, other, None, "the same id with other data").await?;
        let more = append_op(b, &name, &["e0", "new"], expected)?;
        conflict(b, more, None, "a repeat with something new").await?;
        ensure_eq!(all(b, EventScope::Stream(name)).await?, ["e0", "e1", "e2"], "the stream after repeats");
    }
    Ok(())
}

async fn concurrent_appends_one_winner(b: &mut Bench) -> Done {
    let name = stream("race");
    append(b, &name, &["e0"], Expected::NoStream).await?;
    let mut tasks = Vec::new();
    for index in 0..40 {
        let (engine, op) = (b.engine(), append_op(b, &name, &[&format!("r{index}")], Expected::Revision(0))?);
        tasks.push(tokio::spawn(async move { crate::bench::commit(&*engine, vec![op]).await }));
    }
    let mut winners = Vec::new();
    for (index, task) in tasks.into_iter().enumerate() {
        match task.await.map_err(|e| Stop::Failed(e.to_string()))? {
            Ok(_) => winners.push(format!("r{index}")),
            Err(error) => {
                ensure_eq!(error.kind(), onward_core::ErrorKind::Conflict, "what a loser is told");
                ensure_eq!(error.revision(), Some(1), "the revision that a loser is told");
            }
        }
    }
    ensure_eq!(winners.len(), 1, "appends that won");
    ensure_eq!(all(b, EventScope::Stream(name)).await?, ["e0".to_owned(), winners[0].clone()], "the stream");
    Ok(())
}

async fn truncated_events_are_gone(b: &mut Bench) -> Done {
    let (name, other) = (stream("cut"), stream("whole"));
    append(b, &other, &["o"], Expected::NoStream).await?;
    append(b, &name, &["e0", "e1", "e2", "e3"], Expected::NoStream).await?;
    let truncate = |before| Op::Truncate { stream: name.clone(), before };
    b.op(truncate(3)).await?;
    b.op(truncate(1)).await?;
    ensure_eq!(all(b, EventScope::Stream(name.clone())).await?, ["e3"], "the stream after a truncation");
    let category = EventScope::Category { namespace: "default".into(), category: name.category().into() };
    ensure_eq!(all(b, category).await?, ["o", "e3"], "the category after a truncation");
    b.op(truncate(4)).await?;
    ensure!(all(b, EventScope::Stream(name.clone())).await?.is_empty(), "a truncated event is read");
    conflict(b, append_op(b, &name, &["x"], Expected::NoStream)?, Some(3), "an append as to a new stream")
        .await?;
    let next = append(b, &name, &["e4"], Expected::Revision(3)).await?;
    ensure_eq!(next.first_revision, 4, "the revision after everything was truncated");
    ensure!(b.op(truncate(6)).await.is_err(), "a truncation of what is not there yet is accepted");
    Ok(())
}

async fn streams_survive_crash(b: &mut Bench) -> Done {
    let name = stream("crash");
    let first = append(b, &name, &["e0", "e1", "e2"], Expected::NoStream).await?;
    b.op(Op::Truncate { stream: name.clone(), before: 1 }).await?;
    for restart in [false, true] {
        if restart {
            b.subject.restart().await?
        } else {
            b.subject.crash().await?
        }
        ensure_eq!(all(b, EventScope::Stream(name.clone())).await?, ["e1", "e2"], "the stream");
        conflict(
            b,
            append_op(b, &name, &["x"], Expected::Revision(1))?,
            Some(2),
            "an append on an old revision",
        )
        .await?;
    }
    let again = append(b, &name, &["e3"], Expected::Revision(2)).await?;
    ensure!(again.position > first.position, "positions went back over a restart");
    b.subject.restart().await?;
    ensure!(append(b, &name, &["e3"], Expected::Any).await?.duplicate, "a repeat after a restart is new");
    Ok(())
}
