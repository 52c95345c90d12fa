//! Calls of the instance's own functions.

use onward_core::InletConfig;
use tokio_postgres::types::{ToSql, Type};

/// A parameter and its type: given with the call, so that no statement is prepared and any pooler will do.
pub(crate) type Param<'a> = (&'a (dyn ToSql + Sync), Type);

/// `select * from "schema".name($1, ...)`.
pub(crate) fn call(schema: &str, name: &str, count: usize) -> String {
    let holders: Vec<String> = (1..=count).map(|n| format!("${n}")).collect();
    format!("select * from \"{schema}\".{name}({})", holders.join(", "))
}

/// The first bit of every advisory lock's key of an instance, from its schema's name.
pub(crate) fn lock_key(schema: &str) -> i64 {
    i64::from_le_bytes(xxhash_rust::xxh3::xxh3_64(format!("onward/{schema}").as_bytes()).to_le_bytes())
}

/// The definitions of an instance, in their order.
const PARTS: [&str; 14] = [
    include_str!("../sql/0001_tables.sql"),
    include_str!("../sql/0002_moves.sql"),
    include_str!("../sql/0003_time.sql"),
    include_str!("../sql/0004_put.sql"),
    include_str!("../sql/0005_put_slowly.sql"),
    include_str!("../sql/0006_take.sql"),
    include_str!("../sql/0007_lease.sql"),
    include_str!("../sql/0008_settle.sql"),
    include_str!("../sql/0009_changes.sql"),
    include_str!("../sql/0010_bulk.sql"),
    include_str!("../sql/0011_looks.sql"),
    include_str!("../sql/0012_upkeep.sql"),
    include_str!("../sql/0013_topology.sql"),
    include_str!("../sql/0014_public.sql"),
];

/// The rules of a queue that nobody declared.
pub(crate) fn default_rules() -> String {
    serde_json::to_string(&InletConfig::default()).expect("numbers and names always serialise")
}

/// How long a settlement is remembered at least, in microseconds: ten minutes.
const REMEMBERED_US: u64 = 600_000_000;

/// The definitions for a schema.
pub(crate) fn definitions(schema: &str) -> String {
    PARTS
        .join("\n")
        .replace("onward.", &format!("\"{schema}\"."))
        .replace("@schema@", schema)
        .replace("@lock@", &lock_key(schema).to_string())
        .replace("@remembered@", &REMEMBERED_US.to_string())
        .replace("@defaults@", &default_rules())
}
