//! What a random run on a topic does, and by which rules.

use onward_core::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

pub(crate) const SUBS: [&str; 4] = ["all", "keyed", "typed", "headed"];

#[derive(Debug, Clone)]
pub(crate) enum Step {
    Publish { id: u8, key: u8, kind: u8, region: bool, ttl: bool },
    Lease { sub: u8, process: u8, count: u8, accepts: bool },
    Settle { which: u8, how: u8 },
    EndProcess { process: u8, died: bool },
    Seek { sub: u8, to: u8, place: u8, again: bool },
    Purge { sub: u8, dead: bool, all: bool },
    Redrive { sub: u8 },
    Cancel { sub: u8, id: u8 },
    Renew { sub: u8 },
    Pass { secs: u8 },
}

pub(crate) fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        9 => (any::<u8>(), 0..4u8, 0..3u8, any::<bool>(), any::<bool>())
            .prop_map(|(id, key, kind, region, ttl)| Step::Publish { id, key, kind, region, ttl }),
        8 => (0..4u8, 0..3u8, 1..5u8, any::<bool>())
            .prop_map(|(sub, process, count, accepts)| Step::Lease { sub, process, count, accepts }),
        8 => (any::<u8>(), 0..5u8).prop_map(|(which, how)| Step::Settle { which, how }),
        1 => (0..3u8, any::<bool>()).prop_map(|(process, died)| Step::EndProcess { process, died }),
        2 => (0..4u8, 0..4u8, any::<u8>(), any::<bool>())
            .prop_map(|(sub, to, place, again)| Step::Seek { sub, to, place, again }),
        1 => (0..4u8, any::<bool>(), any::<bool>()).prop_map(|(sub, dead, all)| Step::Purge { sub, dead, all }),
        1 => (0..4u8).prop_map(|sub| Step::Redrive { sub }),
        1 => (0..4u8, any::<u8>()).prop_map(|(sub, id)| Step::Cancel { sub, id }),
        1 => (0..4u8).prop_map(|sub| Step::Renew { sub }),
        2 => (0..20u8).prop_map(|secs| Step::Pass { secs }),
    ]
}

pub(crate) fn topic_config() -> impl Strategy<Value = TopicConfig> {
    (0..4u8).prop_map(|retention| TopicConfig {
        retention_ms: (retention & 1 > 0).then_some(20_000),
        retention_bytes: (retention & 2 > 0).then_some(600),
        dedup_window_ms: 15_000,
        ..TopicConfig::default()
    })
}

pub(crate) fn rules(sub: &str, bounded: bool) -> InletConfig {
    let by_key =
        OrderPolicy::ByKey { stuck_head: if bounded { StuckHead::Wait } else { StuckHead::SetAside } };
    InletConfig {
        lease_ms: 5_000,
        order: if sub == "keyed" { by_key } else { OrderPolicy::Unordered },
        guarantee: match sub == "typed" && bounded {
            true => DeliveryGuarantee::AtMostOnce,
            false => DeliveryGuarantee::AtLeastOnce,
        },
        retry: RetryPolicy { attempts_max: 3, ..RetryPolicy::default() },
        depth_max: if bounded { 3 } else { 1_000 },
        overflow: if sub == "all" { Overflow::ShedLowest } else { Overflow::Refuse },
        result_retention_ms: if sub == "headed" { 10_000 } else { 0 },
        ..InletConfig::default()
    }
}

pub(crate) fn filter(sub: &str) -> Filter {
    Filter {
        types: if sub == "typed" { vec!["a*".into()] } else { Vec::new() },
        headers: match sub == "headed" {
            true => [("region".to_owned(), "eu".to_owned())].into(),
            false => BTreeMap::new(),
        },
        ..Filter::default()
    }
}

pub(crate) fn topic() -> Name {
    "orders".parse().unwrap()
}

pub(crate) fn sub(number: u8) -> Inlet {
    Inlet::subscription(topic(), SUBS[number as usize]).unwrap()
}
