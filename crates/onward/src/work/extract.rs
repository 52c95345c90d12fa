//! What a handler's arguments are made from.

use super::{Context, states::States};
use onward_core::{CauseKind, Failure, Message, Payload, Result};
use serde::de::DeserializeOwned;
use std::{
    any::{Any, TypeId},
    ops::Deref,
    sync::Arc,
};

/// An argument of a handler that is made from the delivery. Implement it for types of your own.
pub trait Extract: Sized + Send + 'static {
    /// Makes it. Must not block.
    ///
    /// # Errors
    /// A failure, with which the message is set aside.
    fn extract(context: &Context) -> Result<Self, Failure>;

    /// Checks, before the worker starts, that it will be there.
    ///
    /// # Errors
    /// What is missing, and the mend.
    fn check(states: &States) -> Result<()> {
        let _ = states;
        Ok(())
    }
}

/// The data read as JSON, as an argument; a value written as JSON, as an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Json<T>(pub T);

/// What all handlers share, given by [`Worker::state`](super::Worker::state).
#[derive(Debug)]
pub struct State<T>(pub Arc<T>);

impl<T> Clone for State<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> Deref for State<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl Extract for Context {
    fn extract(context: &Context) -> Result<Self, Failure> {
        Ok(context.clone())
    }
}

impl Extract for Message {
    fn extract(context: &Context) -> Result<Self, Failure> {
        Ok(context.message().clone())
    }
}

impl<T: DeserializeOwned + Send + 'static> Extract for Json<T> {
    fn extract(context: &Context) -> Result<Self, Failure> {
        decode(context.message()).map(Json)
    }
}

impl<T: Send + Sync + 'static> Extract for State<T> {
    fn extract(context: &Context) -> Result<Self, Failure> {
        let state = context.attempt.states.get();
        state.map(State).map_err(|e| Failure::new(CauseKind::Permanent, e.to_string()))
    }

    fn check(states: &States) -> Result<()> {
        states.get::<T>().map(drop)
    }
}

/// Reads the data. What does not fit the type is a dead letter with the reason, never an endless retry.
pub(crate) fn decode<T: DeserializeOwned>(message: &Message) -> Result<T, Failure> {
    decode_payload(&message.data)
}

/// As [`decode`], of data alone.
pub(crate) fn decode_payload<T: DeserializeOwned>(data: &Payload) -> Result<T, Failure> {
    if !data.is_json() {
        let what = format!("the data is {}, and the handler takes JSON", data.content_type());
        return Err(Failure::new(CauseKind::Undecodable, what));
    }
    data.parse().map_err(|e| Failure::new(CauseKind::Undecodable, e.what()))
}

/// The first argument of a handler: the data itself, the whole [`Message`], or anything that is extracted.
///
/// `How` tells the ways apart for the compiler; it is never written.
pub trait First<How>: Sized + Send + 'static {
    /// Makes it.
    ///
    /// # Errors
    /// As [`Extract::extract`].
    fn first(context: &Context) -> Result<Self, Failure>;

    /// As [`Extract::check`].
    ///
    /// # Errors
    /// As [`Extract::check`].
    fn check_first(states: &States) -> Result<()> {
        let _ = states;
        Ok(())
    }
}

/// Marks a first argument that is the data.
#[derive(Debug)]
pub struct AsData;

/// Marks a first argument that is extracted.
#[derive(Debug)]
pub struct AsExtract;

impl<T: DeserializeOwned + Send + 'static> First<AsData> for T {
    fn first(context: &Context) -> Result<Self, Failure> {
        // A message can itself be read from JSON, so only its type tells that the whole message is meant.
        if TypeId::of::<T>() == TypeId::of::<Message>() {
            let whole: Box<dyn Any> = Box::new(context.message().clone());
            if let Ok(message) = whole.downcast() {
                return Ok(*message);
            }
        }
        decode(context.message())
    }
}

macro_rules! first_by_extract {
    ($($({$($generic:tt)*})? $type:ty;)*) => { $(
        impl$(<$($generic)*>)? First<AsExtract> for $type {
            fn first(context: &Context) -> Result<Self, Failure> {
                Self::extract(context)
            }

            fn check_first(states: &States) -> Result<()> {
                <Self as Extract>::check(states)
            }
        }
    )* };
}

first_by_extract! {
    Context;
    {T: DeserializeOwned + Send + 'static} Json<T>;
    {T: Send + Sync + 'static} State<T>;
}
