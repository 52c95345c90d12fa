//! Onward over HTTP: queues, jobs and dead letters for programs in any language, on any engine.
//!
//! Every handler is a thin translation: it reads a request into the types of `onward-core`, calls the engine, and writes
//! the answer. Rules of delivery live in the engine; here live the wire's forms, bounds, tokens and time limits.

mod api;
mod app;
mod auth;
mod body;
mod metrics;
mod openapi;
mod options;
mod problem;
mod serve;

pub use auth::{Action, Grant, Grants, TOKEN_BYTES, new_token, token_hash};
pub use openapi::openapi_json;
pub use options::ServerOptions;
pub use serve::serve;
