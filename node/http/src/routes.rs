//! A route, its operations, and what holds for every request to one of them before its handler runs.
//!
//! Owns [`Policy`], and the form in which the files of resources declare their routes: `router` has the list of them, and what is made of it.
//! Never decodes what stands in a path, and never knows what a handler does.

use std::fmt;

use axum::routing::MethodRouter;
use http::Method;
use quorate_node_core::gateway::admission::request_class::RequestClass;
use quorate_node_core::gateway::auth::guard::Guard;
use utoipa::openapi::RefOr;
use utoipa::openapi::path::Paths;
use utoipa::openapi::schema::Schema;

/// How long a body may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyLimit {
    /// As configured.
    Configured,
    /// So many bytes, whatever is configured.
    Bytes(usize),
    /// A stream of operations is bounded by its lines; everything else as configured.
    Lines,
}

/// What holds for every request to an operation before its handler runs.
#[derive(Debug, Clone, Copy)]
pub struct Policy {
    /// Where it is admitted.
    pub class: RequestClass,
    /// Who may ask.
    pub guard: Guard,
    /// Whether it puts a command into the log under a request id, if it is not a `GET`.
    is_command: bool,
    /// Whether it is served whatever its account owes.
    pub is_vital: bool,
    /// How long its body may be.
    pub body: BodyLimit,
    /// Whether a body that it has no use for is passed over; else it is refused.
    pub passes_over_body: bool,
    /// Whether its query is for somebody else to read; else a parameter that it does not have is refused.
    pub passes_over_query: bool,
}

impl Policy {
    /// Work on data, admitted in this class. The handler judges what the request names.
    pub const fn data(class: RequestClass) -> Self {
        Self {
            class,
            guard: Guard::Judged,
            is_command: true,
            is_vital: false,
            body: BodyLimit::Configured,
            passes_over_body: false,
            passes_over_query: false,
        }
    }

    /// About the node or the cluster: never held back, so that an operator learns what is going on.
    pub const fn node(guard: Guard) -> Self {
        Self { guard, ..Self::data(RequestClass::Node) }
    }

    /// Puts no command into the log, though it is no `GET`.
    pub const fn without_command(self) -> Self {
        Self { is_command: false, ..self }
    }

    /// Served whatever its account owes: what hangs on it is worth more than one operation.
    pub const fn vital(self) -> Self {
        Self { is_vital: true, ..self }
    }

    /// For the owner of the session that it names, even without any permission.
    pub const fn for_owners(self) -> Self {
        Self { guard: Guard::Owned, ..self }
    }

    /// Takes a body that it has no use for.
    pub const fn passing_over_body(self) -> Self {
        Self { passes_over_body: true, ..self }
    }

    /// Takes a query that it has no use for.
    pub const fn passing_over_query(self) -> Self {
        Self { passes_over_query: true, ..self }
    }

    /// With another bound on its body.
    pub const fn with_body(self, body: BodyLimit) -> Self {
        Self { body, ..self }
    }
}

/// One method of a route.
#[derive(Debug, Clone)]
pub struct Operation {
    /// `GET` stands for `HEAD` too.
    pub method: Method,
    /// What holds for it.
    pub policy: Policy,
    /// The parameters that its query may have.
    pub parameters: Vec<String>,
    /// The content types that its body may have, as a header lists them.
    pub takes: String,
    /// In how many content types it answers.
    pub forms: usize,
    /// Whether it answers with a stream of events.
    pub is_event_stream: bool,
}

impl Operation {
    /// Whether it puts a command into the log, so that it has a request id.
    pub fn writes(&self) -> bool {
        self.policy.is_command && self.method != Method::GET
    }

    /// Whether it takes a body: then its handler reads it.
    pub fn takes_body(&self) -> bool {
        self.method != Method::GET && self.method != Method::DELETE
    }

    /// Whether its answer comes in several forms, of which `Accept` chooses.
    pub fn has_forms(&self) -> bool {
        self.forms > 1
    }

    /// Whether it serves data rather than telling about the node.
    pub fn is_data(&self) -> bool {
        self.policy.class != RequestClass::Node
    }
}

/// The template of the route of every path that has none.
pub const UNKNOWN: &str = "unknown";

/// One path of the API, with what it takes.
#[derive(Clone)]
pub struct Route {
    template: String,
    operations: Vec<Operation>,
    /// The value of the `Allow` header.
    allow: String,
    /// Its number in the table.
    number: usize,
    /// What stands before and behind the name in its paths.
    before: usize,
    behind: usize,
}

impl fmt::Debug for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.template)
    }
}

impl PartialEq for Route {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Route {
    /// One that takes nothing yet.
    pub fn new(template: String, number: usize) -> Self {
        let before = template.find('{').unwrap_or(template.len());
        // With two names in it, the handler takes both apart.
        let behind = match template.matches('{').count() {
            1 => template.len() - template.find('}').map_or(template.len(), |end| end + 1),
            _ => 0,
        };
        Self { template, operations: Vec::new(), allow: String::new(), number, before, behind }
    }

    /// The path as the documentation and the metrics show it.
    pub fn template(&self) -> &str {
        &self.template
    }

    /// Whether it stands for every path that is none.
    pub fn is_unknown(&self) -> bool {
        self.template == UNKNOWN
    }

    /// Its number in the table of all routes.
    pub fn number(&self) -> usize {
        self.number
    }

    /// What it takes.
    pub fn operations(&self) -> &[Operation] {
        &self.operations
    }

    /// Whether it serves data rather than telling about the node.
    pub fn is_data(&self) -> bool {
        self.operations.iter().any(Operation::is_data)
    }

    /// The value of the `Allow` header.
    pub fn allow(&self) -> &str {
        &self.allow
    }

    /// What it does under `method`; `None` where it does not take it.
    pub fn operation(&self, method: &Method) -> Option<&Operation> {
        let wanted = if *method == Method::HEAD { &Method::GET } else { method };
        self.operations.iter().find(|operation| operation.method == *wanted)
    }

    /// The name in a path of this route, as it came; empty where the route has none.
    pub fn name<'p>(&self, path: &'p str) -> &'p str {
        path.get(self.before..path.len() - self.behind).unwrap_or("")
    }

    /// Adds an operation.
    pub fn add(&mut self, operation: Operation) {
        self.operations.push(operation);
        let order = [Method::GET, Method::PUT, Method::PATCH, Method::POST, Method::DELETE];
        self.operations.sort_by_key(|operation| order.iter().position(|method| *method == operation.method));
        let names = self.operations.iter().map(|operation| match operation.method {
            Method::GET => "GET, HEAD",
            ref other => other.as_str(),
        });
        self.allow = names.collect::<Vec<_>>().join(", ");
    }

    /// The paths that the router has for it. A name at the end may have slashes in it, unless something can stand behind it. A name
    /// that is empty is for the handler to refuse.
    pub fn patterns(&self, others: &[Route]) -> Vec<String> {
        let Some(start) = self.template.rfind('{') else { return vec![self.template.clone()] };
        let with_more = format!("{}/", self.template);
        let is_last =
            self.template.ends_with('}') && !others.iter().any(|other| other.template.starts_with(&with_more));
        let mut pattern = self.template.clone();
        if is_last {
            pattern.insert(start + 1, '*');
        }
        let end = self.template.rfind('}').map_or(start, |end| end + 1);
        vec![pattern, format!("{}{}", &self.template[..start], &self.template[end..])]
    }
}

/// What `utoipa_axum::routes!` makes of a handler: its schemas, its path with its description, its method with itself.
pub type Declared = (Vec<(String, RefOr<Schema>)>, Paths, MethodRouter);

/// The routes of one resource, in the order in which they were declared.
#[derive(Default)]
pub struct Routes(pub Vec<(Policy, Declared)>);

impl Routes {
    /// None yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an operation.
    pub fn add(self, policy: Policy, declared: Declared) -> Self {
        self.all(policy, [declared])
    }

    /// Adds operations that share a policy.
    pub fn all<const COUNT: usize>(mut self, policy: Policy, declared: [Declared; COUNT]) -> Self {
        self.0.extend(declared.map(|declared| (policy, declared)));
        self
    }
}

/// Longest body of a request that says nothing else, where `configured` is what is configured; `None` for no bound.
pub fn body_bytes_max(policy: &Policy, configured: usize, is_stream: bool) -> Option<usize> {
    match policy.body {
        BodyLimit::Lines if is_stream => None,
        BodyLimit::Bytes(bytes) => Some(bytes),
        BodyLimit::Configured | BodyLimit::Lines => Some(configured),
    }
}
