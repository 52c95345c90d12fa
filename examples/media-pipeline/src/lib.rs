//! Uploads become thumbnails, and nothing gets lost on the way: the worked example of Onward.
//!
//! Read it in this order:
//!
//! 1. [`upload`]: the record of an upload, its states and legal transitions.
//! 2. [`storage`]: object storage; the bytes go straight there.
//! 3. [`catalog`]: the API behind the app, and the one commit that turns a durable object into queued work.
//! 4. [`worker`]: the handler; object first, then record and acknowledgement in one commit.
//! 5. [`reconciler`]: finds durable objects whose event was lost, and uploads that never came.
//! 6. [`demo`]: all of it at once, with a lost event, a killed worker process and damaged pictures.
//!
//! What may go wrong, and why it is right afterwards:
//!
//! | what | why nothing is lost or done twice |
//! |---|---|
//! | the app vanishes after the upload | its upload's id is enough to ask later |
//! | the store's event is lost | the reconciler completes the upload; record and message are one commit |
//! | event and reconciler both come | the record's revision lets one of them through |
//! | a worker dies in the middle | its lease ends with its process; another worker takes the message over |
//! | it dies after the thumbnail was written | the next one writes the same key again |
//! | record written, acknowledgement lost | they are one commit: both are there, or none |
//! | a damaged picture | fails for good: the app sees why, the message is a dead letter |

pub mod catalog;
pub mod demo;
pub mod pictures;
pub mod reconciler;
pub mod report;
pub mod storage;
pub mod thumbnail;
pub mod upload;
pub mod worker;
