//! What a worker's handlers share, by type.

use onward_core::{Error, Result};
use std::{
    any::{Any, TypeId, type_name},
    collections::HashMap,
    fmt,
    sync::Arc,
};

/// What was given by [`Worker::state`](super::Worker::state), one value of a type.
#[derive(Default, Clone)]
pub struct States {
    by_type: HashMap<TypeId, Arc<dyn Any + Send + Sync>>,
}

impl States {
    pub(crate) fn put<T: Send + Sync + 'static>(&mut self, value: T) {
        self.by_type.insert(TypeId::of::<T>(), Arc::new(value));
    }

    /// The value of a type.
    ///
    /// # Errors
    /// `Invalid` when none was given.
    pub fn get<T: Send + Sync + 'static>(&self) -> Result<Arc<T>> {
        let found = self.by_type.get(&TypeId::of::<T>()).cloned();
        found.and_then(|any| any.downcast().ok()).ok_or_else(|| {
            Error::invalid(format!(
                "a handler needs a state of type {}, and none was given",
                type_name::<T>()
            ))
            .mend("give it with `Worker::state(value)`")
        })
    }
}

impl fmt::Debug for States {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} states", self.by_type.len())
    }
}
