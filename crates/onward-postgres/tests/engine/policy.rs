//! The arithmetic that stands twice, in Rust and in the schema, is the same.

use crate::support::Instance;
use onward_core::{Curve, Jitter, RetryPolicy};

#[tokio::test(flavor = "multi_thread")]
async fn the_schema_waits_after_a_failure_as_the_retry_policy_says() {
    let instance = Instance::new().await;
    let curves = [
        Curve::Exponential { base_ms: 1_000, factor: 2.0 },
        Curve::Exponential { base_ms: 250, factor: 1.5 },
        Curve::Exponential { base_ms: 0, factor: 3.0 },
        Curve::Fixed { every_ms: 700 },
        Curve::Steps { waits_ms: vec![5, 50, 500] },
        Curve::Steps { waits_ms: Vec::new() },
    ];
    let text = format!("select \"{}\".retry_wait($1::text::jsonb, $2::bigint, $3::float8)", instance.schema);
    for curve in curves {
        for jitter in [Jitter::None, Jitter::Half, Jitter::Full] {
            let policy =
                RetryPolicy { curve: curve.clone(), jitter, delay_max_ms: 60_000, ..RetryPolicy::default() };
            let json = serde_json::to_string(&policy).unwrap();
            for attempt in [1u32, 2, 3, 7, 60, 5_000] {
                for random in [0, u64::MAX / 2, u64::MAX] {
                    let fraction = random as f64 / u64::MAX as f64;
                    let row = instance
                        .client
                        .query_one(&text, &[&json, &i64::from(attempt), &fraction])
                        .await
                        .unwrap();
                    let expected = policy.delay(attempt, random).as_micros() as i64;
                    let found: i64 = row.get(0);
                    assert!(
                        (found - expected).abs() <= 1,
                        "{policy:?} after {attempt}: {found}, not {expected}"
                    );
                }
            }
        }
    }
    instance.end().await;
}
