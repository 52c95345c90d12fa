//! The client of a running Onward process, and the host that it speaks to.
//!
//! The process that has a data folder open runs a [`Host`] on a Unix socket in it; every other process works through
//! a [`Client`], which is an engine like any other. What they say stands in [`wire`], apart from the socket that
//! carries it; `docs/protocol.md` explains it for those who write a client in another language.

mod client;
mod engine;
pub mod frame;
mod hints;
mod host;
mod incoming;
mod keep;
mod link;
mod options;
mod process;
mod socket;
mod watches;
pub mod wire;
mod within;
mod write;

pub use client::Client;
pub use host::{Host, HostOptions};
pub use options::ClientOptions;
pub use process::this_process;
pub use socket::SOCKET_PATH_BYTES_MAX;
pub use within::within;
