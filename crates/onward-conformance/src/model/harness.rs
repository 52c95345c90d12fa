//! The model under the suite: restart and crash keep its store, as a disk would.

use super::engine::{ModelEngine, Store};
use crate::{Answer, Clock, Harness, Later, SteppedEnv, Subject};
use onward_core::{Engine, Env};
use std::{sync::Arc, time::Duration};

/// The reference model as the suite's first engine.
#[derive(Debug, Clone, Copy, Default)]
pub struct ModelHarness;

impl Harness for ModelHarness {
    fn name(&self) -> &str {
        "model"
    }

    fn has_server(&self) -> bool {
        false
    }

    fn fresh(&self) -> Later<'_, Answer<Box<dyn Subject>>> {
        let subject = ModelSubject::new(SteppedEnv::new(7));
        Box::pin(std::future::ready(Ok(Box::new(subject) as Box<dyn Subject>)))
    }
}

struct ModelSubject {
    store: Arc<Store>,
    env: SteppedEnv,
    engine: Arc<dyn Engine>,
}

impl ModelSubject {
    fn new(env: SteppedEnv) -> Self {
        let store = Arc::<Store>::default();
        let engine = open(&store, &env);
        Self { store, env, engine }
    }
}

fn open(store: &Arc<Store>, env: &SteppedEnv) -> Arc<dyn Engine> {
    let env: Arc<dyn Env> = Arc::new(env.clone());
    Arc::new(ModelEngine::open(store.clone(), env))
}

impl Subject for ModelSubject {
    fn engine(&self) -> Arc<dyn Engine> {
        self.engine.clone()
    }

    fn clock(&self) -> Clock {
        Clock::Stepped(self.env.clone())
    }

    fn restart(&mut self) -> Later<'_, Answer<()>> {
        Box::pin(async move {
            self.engine.close(Duration::ZERO).await?;
            self.engine = open(&self.store, &self.env);
            Ok(())
        })
    }

    fn crash(&mut self) -> Later<'_, Answer<()>> {
        self.engine = open(&self.store, &self.env);
        Box::pin(std::future::ready(Ok(())))
    }

    fn second(&mut self) -> Later<'_, Answer<Arc<dyn Engine>>> {
        Box::pin(std::future::ready(Ok(open(&self.store, &self.env))))
    }

    fn bounce_server(&mut self) -> Later<'_, Answer<()>> {
        Box::pin(std::future::ready(Err(crate::Stop::NotRun("the model has no server".into()))))
    }
}
