//! What steps make and name: sessions, locks, leaderships, watches, mirrors.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use quorate_client::api::Guard;
use quorate_client::{Leadership, LockGuard, Mirror, Session, Watch};

use crate::failure::Failure;

pub enum Thing {
    Session(Session),
    Lock(Held<LockGuard>),
    Leadership(Held<Leadership>),
    Watch(Arc<tokio::sync::Mutex<Watch>>),
    Mirror(Mirror),
}

/// What was granted, and what of it is held until it is given up.
pub struct Held<H> {
    pub guard: Guard,
    pub handle: Option<H>,
}

#[derive(Default)]
pub struct Things(Mutex<BTreeMap<String, Thing>>);

impl Things {
    pub fn add(&self, name: &str, thing: Thing) {
        self.with(|things| things.insert(name.to_owned(), thing));
    }

    /// The thing of this name, as `pick` takes it.
    pub fn of<T>(&self, name: &str, pick: impl FnOnce(&mut Thing) -> Option<T>) -> Result<T, Failure> {
        let picked = self.with(|things| things.get_mut(name).and_then(pick));
        picked.ok_or_else(|| Failure::Suite(format!("there is no such thing `{name}`, or it is of another kind")))
    }

    pub fn take(&self, name: &str) -> Option<Thing> {
        self.with(|things| things.remove(name))
    }

    pub fn sessions(&self) -> Vec<Session> {
        let session = |thing: &Thing| match thing {
            Thing::Session(session) => Some(session.clone()),
            _ => None,
        };
        self.with(|things| things.values().filter_map(session).collect())
    }

    fn with<T>(&self, work: impl FnOnce(&mut BTreeMap<String, Thing>) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Thing {
    pub fn session(&mut self) -> Option<Session> {
        match self {
            Self::Session(session) => Some(session.clone()),
            _ => None,
        }
    }

    /// What a write is guarded by.
    pub fn guard(&mut self) -> Option<Guard> {
        match self {
            Self::Lock(Held { guard, .. }) | Self::Leadership(Held { guard, .. }) => Some(guard.clone()),
            _ => None,
        }
    }

    pub fn lock(&mut self) -> Option<Held<LockGuard>> {
        match self {
            Self::Lock(held) => Some(held.take()),
            _ => None,
        }
    }

    pub fn leadership(&mut self) -> Option<Held<Leadership>> {
        match self {
            Self::Leadership(held) => Some(held.take()),
            _ => None,
        }
    }

    pub fn watch(&mut self) -> Option<Arc<tokio::sync::Mutex<Watch>>> {
        match self {
            Self::Watch(watch) => Some(Arc::clone(watch)),
            _ => None,
        }
    }

    pub fn mirror(&mut self) -> Option<Mirror> {
        match self {
            Self::Mirror(mirror) => Some(mirror.clone()),
            _ => None,
        }
    }
}

impl<H> Held<H> {
    /// The handle, if it was not taken yet; what was granted stays known.
    fn take(&mut self) -> Self {
        Self { guard: self.guard.clone(), handle: self.handle.take() }
    }
}
