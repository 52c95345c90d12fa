//! Request-reply over any engine that has queues: a question into one queue, its answer into another.
//!
//! [`Exchange`] sends requests and hands each reply to whoever waits for it; [`reply`] makes the reply, which joins the
//! commit of the request's acknowledgement. The request's id is what correlates the two: the reply names it as its cause.
//! `correlation_id` goes on unchanged, since it names the whole action, which may hold many requests.
//!
//! A reply is for whoever waits now. Work whose outcome must be found later, by anybody, is a job.

mod exchange;
mod pending;

pub use exchange::{Exchange, REPLIES_COUNT_MAX};
pub use pending::{GIVEN_UP_MAX, ReplyCounts};

use onward_core::{Env, Error, Message, Name, Op, Payload, Result};

/// The header of a request that names the queue for its reply.
pub const REPLY_TO_HEADER: &str = "onward-reply-to";
/// The type of every reply.
pub const REPLY_TYPE: &str = "onward.reply";

/// The queue that a request wants its reply in; `None` for a message that is no request.
///
/// # Errors
/// `Invalid` for a header that is no name.
pub fn reply_to(message: &Message) -> Result<Option<Name>> {
    let parse = |text: &String| text.parse::<Name>().map_err(|error| error.at(REPLY_TO_HEADER));
    message.headers.get(REPLY_TO_HEADER).map(parse).transpose()
}

/// The operation that answers a request: put it into the commit that acknowledges it.
///
/// Guarantees: in that commit, the reply is sent exactly when the request is done. Sent before the acknowledgement, a
/// death between the two makes a second reply, which whoever asked discards.
///
/// # Errors
/// `Invalid` for a message that is no request.
pub fn reply(request: &Message, data: Payload, env: &dyn Env) -> Result<Op> {
    let Some(queue) = reply_to(request)? else {
        return Err(Error::invalid("asks for no reply").at(&request.id).mend("answer only requests"));
    };
    let message = Message::builder(REPLY_TYPE).data(data).caused_by(request).build(env)?;
    Ok(Op::Enqueue { queue, message: Box::new(message) })
}
