//! Reading streams: every scope, both directions, from every place, as of a time, and following.

use super::streams_support::{append, append_op, event, event_of, ids, read, read_pages, stream, tags};
use crate::bench::millis;
use crate::check::{checks, ensure, ensure_eq};
use crate::{Bench, Done, Need::Has, Stop};
use onward_core::{
    Capability::Streams, Direction, EventQuery, EventRead, EventScope, Expected, Op, Position, ReadFrom,
};

checks! { group "streams";
    read_forward_backward,
        "A stream, a category, a query and everything are read forward and backward, page by page, each event once, as it was appended.",
        [Has(Streams)], ["E4"];
    positions_rise_and_no_committed_one_is_skipped,
        "A follower of everything sees positions that rise and every event that was acknowledged, whatever is appended meanwhile.",
        [Has(Streams)], ["E4"];
    as_of_time,
        "A read as of a time shows what stood then, and nothing that came later.",
        [Has(Streams)], ["E2"];
    category_and_query_reads,
        "A category shows its streams' events and no other's; a query shows any of its types that bear every one of its tags.",
        [Has(Streams)], ["E4"];
}

async fn read_forward_backward(b: &mut Bench) -> Done {
    let (one, two) = (stream("pages-1"), stream("pages-2"));
    let from = append(b, &two, &["first"], Expected::NoStream).await?.position;
    let mut expected = Vec::new();
    for index in 0..30 {
        let id = format!("e{index}");
        append(b, if index % 3 == 0 { &two } else { &one }, &[&id], Expected::Any).await?;
        if index % 3 != 0 {
            expected.push(id);
        }
    }
    let scope = EventScope::Stream(one.clone());
    ensure_eq!(read_pages(b, scope.clone(), Direction::Forward).await?, expected, "forward");
    let mut backward = read_pages(b, scope.clone(), Direction::Backward).await?;
    backward.reverse();
    ensure_eq!(backward, expected, "backward");
    let slice =
        read(b, EventRead { from: ReadFrom::Revision(3), ..EventRead::all_of(scope.clone()) }).await?;
    ensure_eq!(ids(&slice), expected[3..], "from a revision");
    let revisions: Vec<u64> = slice.events.iter().map(|recorded| recorded.revision).collect();
    ensure_eq!(revisions, (3..20).collect::<Vec<u64>>(), "revisions");
    let back =
        EventRead { from: ReadFrom::Revision(3), direction: Direction::Backward, ..EventRead::all_of(scope) };
    let slice = read(b, back).await?;
    ensure_eq!(slice.events.first().map(|recorded| recorded.revision), Some(3), "backward from a revision");
    ensure_eq!(slice.events.len(), 4, "backward from a revision");
    let (newest, made) = (&slice.events[0], event(b, &expected[3])?);
    ensure_eq!(newest.stream, one, "the stream of an event");
    ensure_eq!(
        (&newest.event.message.data, &newest.event.message.kind, &newest.event.tags),
        (&made.message.data, &made.message.kind, &made.tags),
        "an event"
    );
    let everything = EventRead { from: ReadFrom::Position(from), ..EventRead::all_of(EventScope::All) };
    ensure_eq!(read(b, everything).await?.events.len(), 31, "everything from a position");
    Ok(())
}

async fn positions_rise_and_no_committed_one_is_skipped(b: &mut Bench) -> Done {
    const WRITERS: usize = 8;
    const EACH: usize = 25;
    let behind = read(b, EventRead { from: ReadFrom::End, ..EventRead::all_of(EventScope::All) }).await?;
    let mut from =
        behind.next.ok_or_else(|| Stop::Failed("a read from the end does not say where to go on".into()))?;
    let mut writers = Vec::new();
    for writer in 0..WRITERS {
        let (engine, name) = (b.engine(), stream(&format!("rise-{writer}")));
        let ops = (0..EACH).map(|n| append_op(b, &name, &[&format!("w{writer}.{n}")], Expected::Any));
        let ops: Vec<Op> = ops.collect::<onward_core::Result<_>>()?;
        writers.push(tokio::spawn(async move {
            for op in ops {
                crate::bench::commit(&*engine, vec![op]).await?;
            }
            Ok::<(), onward_core::Error>(())
        }));
    }
    let (mut seen, mut last) = (Vec::new(), None::<Position>);
    let mut rounds = 0;
    loop {
        let done = writers.iter().all(tokio::task::JoinHandle::is_finished);
        let slice = read(b, EventRead { from, limit: 17, ..EventRead::all_of(EventScope::All) }).await?;
        for recorded in &slice.events {
            ensure!(
                last.is_none_or(|last| last < recorded.position),
                "{} follows {last:?}",
                recorded.position
            );
            last = Some(recorded.position);
            from = ReadFrom::Position(Position(recorded.position.0 + 1));
        }
        seen.extend(ids(&slice));
        rounds += 1;
        if slice.events.is_empty() && (done || rounds > 100_000) {
            break;
        }
        tokio::task::yield_now().await;
    }
    for writer in writers {
        writer.await.map_err(|e| Stop::Failed(e.to_string()))??;
    }
    ensure_eq!(seen.len(), WRITERS * EACH, "events that the follower saw");
    for writer in 0..WRITERS {
        let of_it = seen.iter().filter(|id| id.starts_with(&format!("w{writer}.")));
        let expected: Vec<String> = (0..EACH).map(|n| format!("w{writer}.{n}")).collect();
        ensure_eq!(of_it.cloned().collect::<Vec<_>>(), expected, "what the follower saw of a writer");
    }
    b.note(format!("{} events in {rounds} reads", seen.len()));
    Ok(())
}

async fn as_of_time(b: &mut Bench) -> Done {
    let name = stream("time");
    let mut marks = Vec::new();
    for id in ["e0", "e1", "e2"] {
        append(b, &name, &[id], Expected::Any).await?;
        b.pass(millis(20)).await;
        marks.push(b.env().now());
        b.pass(millis(20)).await;
    }
    let base = EventRead::all_of(EventScope::Stream(name.clone()));
    let expected = [vec!["e0"], vec!["e0", "e1"], vec!["e0", "e1", "e2"]];
    for (mark, expected) in marks.iter().zip(&expected) {
        let slice = read(b, EventRead { as_of: Some(*mark), ..base.clone() }).await?;
        ensure_eq!(ids(&slice), expected[..], "what stood at a time");
        ensure!(slice.events.iter().all(|recorded| recorded.recorded_at <= *mark), "an event is of later");
        let newest = EventRead {
            as_of: Some(*mark),
            from: ReadFrom::End,
            direction: Direction::Backward,
            limit: 1,
            ..base.clone()
        };
        ensure_eq!(ids(&read(b, newest).await?)[..], expected[expected.len() - 1..], "the newest at a time");
    }
    let since = EventRead { from: ReadFrom::Time(marks[0]), ..base.clone() };
    ensure_eq!(ids(&read(b, since).await?), ["e1", "e2"], "what came since a time");
    let until = EventRead { from: ReadFrom::Time(marks[1]), direction: Direction::Backward, ..base };
    ensure_eq!(ids(&read(b, until).await?), ["e1", "e0"], "what came until a time, backward");
    Ok(())
}

async fn category_and_query_reads(b: &mut Bench) -> Done {
    let number = b.next();
    let (tag, rare) = (format!("all:{number}"), format!("rare:{number}"));
    let mut expected = Vec::new();
    for index in 0..12 {
        let name = format!("{}{number}-{index}", ["left", "right"][index % 2]).parse()?;
        let both = [tag.as_str(), rare.as_str()];
        let mut made = event_of(b, &format!("e{index}"), if index % 3 == 0 { &both } else { &both[..1] })?;
        made.message.kind = ["made", "moved", "gone"][index % 3].into();
        b.op(Op::Append { stream: name, events: vec![made], expected: Expected::NoStream, condition: None })
            .await?;
        expected.push(format!("e{index}"));
    }
    let pick = |keep: &dyn Fn(usize) -> bool| -> Vec<String> {
        expected.iter().enumerate().filter(|(index, _)| keep(*index)).map(|(_, id)| id.clone()).collect()
    };
    let category =
        EventScope::Category { namespace: "default".into(), category: format!("right{number}").into() };
    let query = |types: &[&str], with: &[&str]| {
        EventScope::Query(EventQuery {
            types: types.iter().map(|kind| (*kind).into()).collect(),
            tags: tags(with),
        })
    };
    let cases = [
        (category, pick(&|index| index % 2 == 1)),
        (query(&[], &[&tag]), pick(&|_| true)),
        (query(&[], &[&tag, &rare]), pick(&|index| index % 3 == 0)),
        (query(&["moved", "gone"], &[&tag]), pick(&|index| index % 3 != 0)),
        (query(&["moved"], &[&rare]), Vec::new()),
    ];
    for (scope, expected) in cases {
        ensure_eq!(read_pages(b, scope.clone(), Direction::Forward).await?, expected, "{scope:?}");
        let mut backward = read_pages(b, scope.clone(), Direction::Backward).await?;
        backward.reverse();
        ensure_eq!(backward, expected, "{scope:?}, backward");
    }
    Ok(())
}
