//! A tool: its name, what an agent reads of it, and what runs.

use std::sync::Arc;

use futures::future::BoxFuture;
use rmcp::model::{JsonObject, Tool as Shown, ToolAnnotations};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::agent::Agent;
use crate::refusal::Refusal;
use crate::schema;

/// What a call came to.
pub type Outcome = Result<Map<String, Value>, Refusal>;

/// What a tool does to the state that all share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Nothing.
    Reads,
    /// Makes something, or takes it, without overwriting anything.
    Adds,
    /// As `Adds`; a second call with the same arguments changes nothing more.
    AddsOnce,
    /// Overwrites or deletes.
    Overwrites,
    /// As `Overwrites`; a second call with the same arguments changes nothing more.
    OverwritesOnce,
}

impl Effect {
    fn annotations(self) -> ToolAnnotations {
        let overwrites = matches!(self, Self::Overwrites | Self::OverwritesOnce);
        let once = matches!(self, Self::Reads | Self::AddsOnce | Self::OverwritesOnce);
        let annotations = ToolAnnotations::new().read_only(self == Self::Reads).destructive(overwrites);
        annotations.idempotent(once).open_world(false)
    }
}

type Run = Box<dyn Fn(Arc<Agent>, JsonObject) -> BoxFuture<'static, Outcome> + Send + Sync>;

/// One of the tools.
pub struct Tool {
    shown: Shown,
    effect: Effect,
    run: Run,
}

impl Tool {
    /// With arguments of the type of those that `run` takes.
    pub fn new<I, F>(
        name: &'static str,
        effect: Effect,
        description: &'static str,
        run: impl Fn(Arc<Agent>, I) -> F + Send + Sync + 'static,
    ) -> Self
    where
        I: DeserializeOwned + JsonSchema,
        F: Future<Output = Outcome> + Send + 'static,
    {
        let shown = Shown::new(name, description, schema::of::<I>()).with_annotations(effect.annotations());
        let known = shown.input_schema.clone();
        let run = move |agent, arguments: JsonObject| -> BoxFuture<'static, Outcome> {
            if let Some(name) = schema::unknown(&known, &arguments) {
                return refused(format!("there is no argument `{name}`"));
            }
            match serde_json::from_value(Value::Object(arguments)) {
                Ok(input) => Box::pin(run(agent, input)),
                Err(error) => refused(error.to_string()),
            }
        };
        Self { shown, effect, run: Box::new(run) }
    }

    pub fn name(&self) -> &str {
        &self.shown.name
    }

    pub fn shown(&self) -> &Shown {
        &self.shown
    }

    pub fn only_reads(&self) -> bool {
        self.effect == Effect::Reads
    }

    pub fn run(&self, agent: Arc<Agent>, arguments: JsonObject) -> BoxFuture<'static, Outcome> {
        (self.run)(agent, arguments)
    }
}

fn refused(why: String) -> BoxFuture<'static, Outcome> {
    Box::pin(std::future::ready(Err(Refusal::invalid(why))))
}
