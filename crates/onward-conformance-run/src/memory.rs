//! The in-memory engine under the suite, on a stepped clock.

use onward_conformance::{Answer, Clock, Harness, Later, SteppedEnv, Stop, Subject};
use onward_core::Engine;
use onward_embedded::{MemoryEngine, Options};
use std::sync::Arc;

/// Makes in-memory engines.
#[derive(Debug, Clone, Copy, Default)]
pub struct Memory;

impl Harness for Memory {
    fn name(&self) -> &str {
        "memory"
    }

    fn has_server(&self) -> bool {
        false
    }

    fn fresh(&self) -> Later<'_, Answer<Box<dyn Subject>>> {
        let env = SteppedEnv::for_threads(11);
        let engine = MemoryEngine::new(Arc::new(env.clone()), Options::default());
        let subject = OneEngine { engine: Arc::new(engine), env };
        Box::pin(std::future::ready(Ok(Box::new(subject) as Box<dyn Subject>)))
    }
}

/// One engine in this process and nothing beside it.
struct OneEngine {
    engine: Arc<dyn Engine>,
    env: SteppedEnv,
}

fn none<'a, T: Send + 'a>(why: &str) -> Later<'a, Answer<T>> {
    Box::pin(std::future::ready(Err(Stop::NotRun(why.into()))))
}

impl Subject for OneEngine {
    fn engine(&self) -> Arc<dyn Engine> {
        self.engine.clone()
    }

    fn clock(&self) -> Clock {
        Clock::Stepped(self.env.clone())
    }

    fn restart(&mut self) -> Later<'_, Answer<()>> {
        none("the end of the process is the end of its data")
    }

    fn crash(&mut self) -> Later<'_, Answer<()>> {
        none("the end of the process is the end of its data")
    }

    fn second(&mut self) -> Later<'_, Answer<Arc<dyn Engine>>> {
        // Several tasks of one process share it: the same engine is all that another one can have.
        Box::pin(std::future::ready(Ok(self.engine.clone())))
    }

    fn bounce_server(&mut self) -> Later<'_, Answer<()>> {
        none("there is no server: the engine lives in the process that uses it")
    }
}
