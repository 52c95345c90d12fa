//! Which handler takes which message.

use super::Handling;
use onward_core::{Error, Inlet, Result};
use std::{collections::BTreeMap, sync::Arc, time::Duration};

/// The inlets of a worker with their handlers and bounds.
#[derive(Debug, Default, Clone)]
pub(crate) struct Routes {
    pub(crate) inlets: BTreeMap<Inlet, Route>,
}

/// One inlet.
#[derive(Debug, Clone)]
pub(crate) struct Route {
    /// Its share of a lease request when several have work.
    pub(crate) weight: u32,
    /// How many of its messages this worker runs at once.
    pub(crate) concurrency: Option<u32>,
    by_kind: BTreeMap<Arc<str>, Arc<Handling>>,
    any: Option<Arc<Handling>>,
}

impl Default for Route {
    fn default() -> Self {
        Self { weight: 1, concurrency: None, by_kind: BTreeMap::new(), any: None }
    }
}

impl Routes {
    /// The inlet of that name, made where it is new.
    pub(crate) fn inlet(&mut self, name: &str) -> Result<&mut Route> {
        Ok(self.inlets.entry(name.parse()?).or_default())
    }

    /// Adds a handler.
    pub(crate) fn add(&mut self, name: &str, handling: Handling) -> Result<()> {
        let route = self.inlet(name)?;
        let handling = Arc::new(handling);
        let twice = |what: &str| {
            Err(Error::invalid(format!("two handlers take {what}"))
                .at(name)
                .mend("give each its own types with `handler(f).kind(..)`"))
        };
        if handling.kinds.is_empty() {
            return match route.any.replace(handling) {
                Some(_) => twice("every type"),
                None => Ok(()),
            };
        }
        for kind in &handling.kinds {
            if route.by_kind.insert(kind.clone(), handling.clone()).is_some() {
                return twice(&format!("the type `{kind}`"));
            }
        }
        Ok(())
    }
}

impl Route {
    /// The handler of a type.
    pub(crate) fn find(&self, kind: &str) -> Option<&Arc<Handling>> {
        self.by_kind.get(kind).or(self.any.as_ref())
    }

    /// Every handler, each type's once.
    pub(crate) fn handlings(&self) -> impl Iterator<Item = &Arc<Handling>> {
        self.by_kind.values().chain(&self.any)
    }

    /// Every handler waits for a dependency: nothing is to be leased.
    pub(crate) fn is_held(&self, now: Duration) -> bool {
        self.handlings().all(|handling| handling.held(now).is_some())
    }

    /// The types that are taken; `None` for all.
    pub(crate) fn kinds(&self) -> Option<impl Iterator<Item = Arc<str>>> {
        self.any.is_none().then(|| self.by_kind.keys().cloned())
    }
}
