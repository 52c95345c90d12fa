//! The harness that wraps another one's engines into doubles.

use super::{Double, Fault, Rule, wrapper::Memory};
use crate::{Answer, Clock, Harness, Later, Subject};
use onward_core::Engine;
use parking_lot::Mutex;
use std::sync::Arc;

/// Wraps every engine of another harness into one double.
#[derive(Debug)]
pub struct DoubleHarness {
    inner: Arc<dyn Harness>,
    rule: Rule,
}

impl DoubleHarness {
    /// The doubles of one rule.
    pub fn new(inner: Arc<dyn Harness>, rule: Rule) -> Self {
        Self { inner, rule }
    }
}

impl Harness for DoubleHarness {
    fn name(&self) -> &str {
        self.rule.name
    }

    fn has_server(&self) -> bool {
        self.inner.has_server()
    }

    fn fresh(&self) -> Later<'_, Answer<Box<dyn Subject>>> {
        Box::pin(async move {
            let inner = self.inner.fresh().await?;
            let fault = self.rule.fault;
            let double = Double::new(inner.engine(), fault);
            let memory = double.memory.clone();
            Ok(Box::new(DoubleSubject { inner, engine: Arc::new(double), fault, memory }) as Box<dyn Subject>)
        })
    }
}

struct DoubleSubject {
    inner: Box<dyn Subject>,
    engine: Arc<dyn Engine>,
    fault: Fault,
    memory: Arc<Mutex<Memory>>,
}

impl DoubleSubject {
    /// The same double around another opening of the same data.
    fn wrap(&self, inner: Arc<dyn Engine>) -> Arc<dyn Engine> {
        Arc::new(Double { inner, fault: self.fault, memory: self.memory.clone() })
    }
}

impl Subject for DoubleSubject {
    fn engine(&self) -> Arc<dyn Engine> {
        self.engine.clone()
    }

    fn clock(&self) -> Clock {
        self.inner.clock()
    }

    fn restart(&mut self) -> Later<'_, Answer<()>> {
        Box::pin(async move {
            self.inner.restart().await?;
            self.engine = self.wrap(self.inner.engine());
            Ok(())
        })
    }

    fn crash(&mut self) -> Later<'_, Answer<()>> {
        Box::pin(async move {
            self.inner.crash().await?;
            self.memory.lock().opened_again = true;
            self.engine = self.wrap(self.inner.engine());
            Ok(())
        })
    }

    fn second(&mut self) -> Later<'_, Answer<Arc<dyn Engine>>> {
        Box::pin(async move {
            let second = self.inner.second().await?;
            Ok(self.wrap(second))
        })
    }

    fn bounce_server(&mut self) -> Later<'_, Answer<()>> {
        self.inner.bounce_server()
    }
}
