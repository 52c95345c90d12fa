#![doc = include_str!("docs.md")]

mod config;
mod core;
mod declare;
mod deliver;
mod engine;
mod error;
mod find;
mod group;
mod hub;
mod lease;
mod ops;
mod pool;
mod put;
mod schema;
mod settle;
mod sql;

pub use config::PostgresOptions;
pub use engine::PostgresEngine;
