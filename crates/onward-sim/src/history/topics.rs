//! Judges what topics keep, and tells of what went into topics and streams whether it is there.

use std::collections::{BTreeMap, BTreeSet};

use onward_core::{MessageId, Name, Position};

use super::{Answer, Event, FaultKind, History, Report, Sent, What};

/// Of an id that was put into a topic or a stream just once: whether it is there at the end.
pub(super) type Evidence = BTreeMap<MessageId, bool>;

/// What the last readings of everything show.
pub(super) fn evidence(history: &History) -> Evidence {
    let mut there: BTreeSet<&MessageId> = BTreeSet::new();
    let (mut topics, mut streams) = (BTreeSet::new(), false);
    for event in history.events.iter().rev().filter(|event| event.answer == Answer::Ok) {
        match &event.what {
            What::ReadTopic { topic, messages } if topics.insert(topic) => {
                there.extend(messages.iter().map(|(id, ..)| id));
            }
            What::ReadEvents(read) if !streams && read.covers_all() => {
                streams = true;
                there.extend(read.events.iter().map(|event| &event.id));
            }
            _ => {}
        }
    }
    let mut times: BTreeMap<&MessageId, u32> = BTreeMap::new();
    for event in history.events.iter().filter(|event| event.maybe()) {
        for id in put_in(event, history, &topics, streams) {
            *times.entry(id).or_default() += 1;
        }
    }
    let once = times.into_iter().filter(|(_, times)| *times == 1);
    once.map(|(id, _)| (id.clone(), there.contains(id))).collect()
}

/// The ids that a call put where the last readings would show them.
fn put_in<'a>(
    event: &'a Event,
    history: &History,
    topics: &BTreeSet<&Name>,
    streams: bool,
) -> Vec<&'a MessageId> {
    match &event.what {
        What::Publish { topic, sent, .. }
            if topics.contains(topic) && history.contract.keeping.contains(topic) =>
        {
            vec![&sent.id]
        }
        What::Append(addition) if streams && !truncated(history, &addition.stream) => {
            addition.events.iter().map(|event| &event.id).collect()
        }
        _ => Vec::new(),
    }
}

fn truncated(history: &History, of: &str) -> bool {
    let mut events = history.events.iter().filter(|event| event.maybe());
    events.any(|event| matches!(&event.what, What::Truncate { stream, .. } if stream == of))
}

/// Judges each reading of a topic.
pub(super) fn check(history: &History, report: &mut Report) {
    for event in history.events.iter().filter(|event| event.answer == Answer::Ok) {
        let What::ReadTopic { topic, messages } = &event.what else { continue };
        for pair in messages.windows(2).filter(|pair| pair[0].2 >= pair[1].2) {
            let what = format!("topic {topic}: {:?} follows {:?}", pair[1].2, pair[0].2);
            report.fault(FaultKind::Revision, &[&pair[1].0], what);
        }
        let mut seen = BTreeSet::new();
        for (id, content, position) in messages {
            if !seen.insert(id) {
                let what = format!("stands twice in topic {topic}, the second time at {position:?}");
                report.fault(FaultKind::Duplicated, &[id], what);
            }
            let mut sent = published(history, topic).filter(|(send, _)| send.called < event.ended);
            if !sent.any(|(_, sent)| sent.id == *id && sent.content == *content) {
                let what = format!("stands in topic {topic} at {position:?} and was never published so");
                report.fault(FaultKind::Phantom, &[id], what);
            }
        }
        if history.contract.keeping.contains(topic) {
            missing(history, topic, event, messages, report);
        }
    }
}

fn missing(
    history: &History,
    topic: &Name,
    read: &Event,
    messages: &[(MessageId, u64, Position)],
    report: &mut Report,
) {
    let sure = published(history, topic).filter(|(event, sent)| {
        event.answer == Answer::Ok && sent.duplicate_of.is_none() && event.ended < read.called
    });
    for (event, sent) in sure {
        if !messages.iter().any(|(id, ..)| *id == sent.id) {
            let what = format!("was published to {topic} at {:?} and is not kept", event.ended.at);
            report.fault(FaultKind::Lost, &[&sent.id], what);
        }
    }
}

/// What was published to a topic, or may have been.
pub(super) fn published<'a>(
    history: &'a History,
    of: &'a Name,
) -> impl Iterator<Item = (&'a Event, &'a Sent)> {
    history.events.iter().filter(|event| event.maybe()).filter_map(move |event| match &event.what {
        What::Publish { topic, sent, .. } if topic == of => Some((event, sent)),
        _ => None,
    })
}
