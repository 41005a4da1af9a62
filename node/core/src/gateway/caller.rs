//! Somebody who sends a request, and what they want.
//!
//! Owns the judgement of requirements for one person, and the order in which it is made: first by what this node knows, then, before it
//! says no, by what the cluster knows. Never decides what something requires.
//!
//! What a request names is judged after admission, since as a rule only its body says the names, and before it waits for room for values or
//! for a place in the log.

use std::sync::Arc;
use std::time::Instant;

use quorate_api::{Applied, ErrorCode, WatchEndCode};
use quorate_machine::access::{Permission, RequiredPermission, Rights};
use quorate_machine::query::StateFault;
use quorate_machine::types::{Revision, SessionId};

use crate::backend::{Consistency, Renewer};
use crate::connection::origin::Origin;
use crate::gateway::admission::turns::Lanes;
use crate::gateway::api::Api;
use crate::gateway::auth::known::Person;
use crate::gateway::auth::requirement::{Requirement, Visit, Wanted};
use crate::gateway::auth::who::Who;
use crate::gateway::failure::Failure;
use crate::gateway::freshness::{barrier, refresh};
use crate::gateway::text::quoted;

/// Somebody who asks for something.
pub struct Caller<'a> {
    /// The API that was asked.
    pub api: &'a Arc<Api>,
    /// Who asks.
    pub who: &'a Who,
    /// From where.
    pub origin: &'a Arc<Origin>,
    /// The turns of their account.
    pub lanes: &'a Arc<Lanes>,
    /// At which route: its template.
    pub route: &'static str,
}

impl Clone for Caller<'_> {
    fn clone(&self) -> Self {
        *self
    }
}

impl Copy for Caller<'_> {}

/// What a command takes along that was let in.
#[derive(Debug, Default)]
pub struct Admitted {
    /// Who asked; empty for anybody.
    pub principal: String,
    /// By which rules that was judged; `None` where no rules were.
    pub access_revision: Option<Revision>,
}

/// What is missing.
#[derive(Debug, Default)]
pub struct Refusal {
    /// A right, or that a session is theirs; for people.
    missing: Option<String>,
    /// A session that this node does not know.
    session: Option<SessionId>,
}

impl Refusal {
    fn failure(self, name: &str) -> Option<Failure> {
        if let Some(missing) = self.missing {
            let detail = format!("{} has no permission for this: {missing}", quoted(name));
            return Some(Failure::new(ErrorCode::PermissionDenied, Applied::No, detail));
        }
        self.session.map(Failure::session_expired)
    }
}

impl Caller<'_> {
    /// Lets a command in, or says why not.
    pub async fn admit(&self, deadline: Instant, wanted: Wanted<'_>) -> Result<Admitted, Failure> {
        if let Who::Anybody = self.who {
            return Ok(Admitted::default());
        }
        if let Ok(pass) = self.judge(wanted) {
            return Ok(pass);
        }
        refresh(&self.api.node, deadline).await?;
        self.judge(wanted)
    }

    /// Waits until reads are as fresh as asked for, and lets those in that may be told what they want: by the rules as they are then.
    pub async fn admit_read(&self, fresh: Consistency, deadline: Instant, wanted: Wanted<'_>) -> Result<(), Failure> {
        barrier(&self.api.node, fresh, deadline).await?;
        self.check(wanted)
    }

    /// Says whether something may be told, by what this node knows: after it is as fresh as the answer shall be.
    pub fn check(&self, wanted: Wanted<'_>) -> Result<(), Failure> {
        match self.who {
            Who::Anybody => Ok(()),
            Who::Nobody | Who::Somebody(_) => self.judge(wanted).map(|_| ()),
        }
    }

    /// Whom this node takes them for, and all that they may do. Nobody in particular, where nobody is asked.
    pub fn rights(&self) -> Result<(Option<String>, Rights), Failure> {
        Ok(match self.person()? {
            None => (None, Rights::all()),
            Some(person) => (Some(person.name.to_string()), person.rights.clone()),
        })
    }

    /// Says whether what somebody asked for may be told: to them, and to who may administer everything.
    pub fn check_owner(&self, owner: &str) -> Result<(), Failure> {
        match self.person()? {
            Some(person) if *owner != *person.name && !may_do_all(&person) => {
                let missing = "the request was somebody else's".to_owned();
                let refusal = Refusal { missing: Some(missing), session: None };
                refusal.failure(&person.name).map_or(Ok(()), Err)
            }
            _ => Ok(()),
        }
    }

    /// Says whether they may ask what somebody may do: about themselves, or who may administer everything.
    pub fn check_may_ask_about(&self, name: &str) -> Result<(), Failure> {
        match self.person()? {
            Some(person) if *name != *person.name && !may_do_all(&person) => {
                let missing = shown(&RequiredPermission::Prefix(Permission::Admin, b""));
                let refusal = Refusal { missing: Some(missing), session: None };
                refusal.failure(&person.name).map_or(Ok(()), Err)
            }
            _ => Ok(()),
        }
    }

    /// Whether they may administer everything.
    pub fn may_do_all(&self) -> Result<bool, Failure> {
        Ok(self.person()?.is_none_or(|person| may_do_all(&person)))
    }

    /// Admits a renewal of sessions whose owners are these. Those that have ended belong to nobody; to be told of them takes a right
    /// at all, or of sessions of one's own.
    pub fn check_renewal(&self, sessions: &[SessionId], owners: &[Option<String>]) -> Result<(), Failure> {
        let Some(person) = self.person()? else { return Ok(()) };
        let missing = sessions.iter().zip(owners).find_map(|(id, owner)| match owner {
            Some(owner) if *owner == *person.name || may_do_all(&person) => None,
            Some(_) => Some(format!("session {id} is somebody else's")),
            None if person.rights.grants().is_empty() => Some("it needs any grant at all".to_owned()),
            None => None,
        });
        Refusal { missing, session: None }.failure(&person.name).map_or(Ok(()), Err)
    }

    /// Whose turn it is when renewals take turns.
    pub fn renewer(&self) -> Renewer {
        match self.who {
            Who::Somebody(somebody) => Renewer::user(somebody.name()),
            Who::Anybody | Who::Nobody => Renewer::from(&format!("{:?}", self.origin.neighbour())),
        }
    }

    /// Whether a command of theirs is judged, or told to the audit log.
    pub fn is_judged_or_noted(&self) -> bool {
        !matches!(self.who, Who::Anybody) || self.api.auth.notes()
    }

    /// Whether what says who asks still holds.
    pub fn is_known(&self) -> Result<(), Failure> {
        self.person().map(|_| ())
    }

    fn judge(&self, wanted: Wanted<'_>) -> Result<Admitted, Failure> {
        let Some(person) = self.person()? else { return Ok(Admitted::default()) };
        match self.refusal(&person, wanted)?.failure(&person.name) {
            Some(failure) => Err(failure),
            None => {
                let access_revision = (!person.is_root).then_some(person.revision);
                Ok(Admitted { principal: person.name.to_string(), access_revision })
            }
        }
    }

    /// Who it is, by what this node knows now; `None` for anybody.
    fn person(&self) -> Result<Option<Arc<Person>>, Failure> {
        match self.who {
            Who::Anybody => Ok(None),
            Who::Nobody => {
                Err(Failure::unauthenticated("the request does not say who asks; send `Authorization: Bearer TOKEN`"))
            }
            Who::Somebody(somebody) => match self.api.auth.prove(&self.api.node, &somebody.proof)? {
                Ok(person) => Ok(Some(person)),
                Err(doubt) => Err(Failure::unauthenticated(doubt.why)),
            },
        }
    }

    /// What is missing: the first right, and the first session that is not known.
    fn refusal(&self, person: &Person, wanted: Wanted<'_>) -> Result<Refusal, Failure> {
        let mut refusal = Refusal::default();
        let mut fault: Option<StateFault> = None;
        wanted(&mut |requirement| {
            if refusal.missing.is_some() || fault.is_some() {
                return;
            }
            match requirement {
                Requirement::Permission(need) if person.rights.allow(&need) => {}
                Requirement::Permission(need) => refusal.missing = Some(shown(&need)),
                Requirement::Something if !person.rights.grants().is_empty() => {}
                Requirement::Something => refusal.missing = Some("it needs any grant at all".to_owned()),
                Requirement::Session(id) | Requirement::SessionOfBranch(id) => match self.owner(id) {
                    Err(error) => fault = Some(error),
                    Ok(None) if matches!(requirement, Requirement::SessionOfBranch(_)) => {}
                    Ok(None) => refusal.session = refusal.session.or(Some(id)),
                    Ok(Some(owner)) if *owner == *person.name || may_do_all(person) => {}
                    Ok(Some(_)) => refusal.missing = Some(format!("session {id} is somebody else's")),
                },
            }
        });
        match fault {
            Some(fault) => Err(Failure::from_fault(&fault)),
            None => Ok(refusal),
        }
    }

    fn owner(&self, id: SessionId) -> Result<Option<String>, StateFault> {
        Ok(self.api.node.session(id, 0)?.found.map(|held| held.row.principal))
    }
}

/// Whether somebody may administer everything.
fn may_do_all(person: &Person) -> bool {
    person.is_root || person.rights.allow(&RequiredPermission::Prefix(Permission::Admin, b""))
}

/// What is missing, for people: never what is there.
fn shown(need: &RequiredPermission<'_>) -> String {
    let text = |bytes: &[u8]| quoted(bytes);
    let permission = match need.permission() {
        Permission::Read => "read",
        Permission::Write => "write",
        Permission::Lock => "lock",
        Permission::Admin => "admin",
        Permission::Backup => "backup",
        Permission::Monitor => "monitor",
    };
    match need {
        RequiredPermission::Name(_, name) => format!("it needs {permission} on {}", text(name)),
        RequiredPermission::Prefix(_, b"") => format!("it needs {permission} on everything"),
        RequiredPermission::Prefix(_, prefix) => {
            format!("it needs {permission} on all that begins with {}", text(prefix))
        }
        RequiredPermission::Range(_, b"", None) => format!("it needs {permission} on everything"),
        RequiredPermission::Range(_, start, None) => format!("it needs {permission} on all from {} on", text(start)),
        RequiredPermission::Range(_, start, Some(end)) => {
            format!("it needs {permission} on all from {} to {}, within one prefix", text(start), text(end))
        }
    }
}

/// Somebody who goes on being told something.
pub struct Watching {
    api: Arc<Api>,
    who: Who,
    origin: Arc<Origin>,
    lanes: Arc<Lanes>,
    route: &'static str,
    wanted: Box<dyn Fn(&mut Visit<'_>) + Send + Sync>,
}

impl Watching {
    /// `None` where anybody may be told.
    pub fn of(caller: &Caller<'_>, wanted: impl Fn(&mut Visit<'_>) + Send + Sync + 'static) -> Option<Self> {
        if let Who::Anybody = caller.who {
            return None;
        }
        let (api, who, origin) = (Arc::clone(caller.api), caller.who.clone(), Arc::clone(caller.origin));
        let (lanes, route) = (Arc::clone(caller.lanes), caller.route);
        Some(Self { api, who, origin, lanes, route, wanted: Box::new(wanted) })
    }

    /// Why no more may be told, if so.
    pub fn end(&self) -> Option<(WatchEndCode, String)> {
        let Self { api, who, origin, lanes, route, .. } = self;
        let caller = Caller { api, who, origin, lanes, route };
        let problem = caller.check(&*self.wanted).err()?.into_problem();
        let code = match problem.code {
            ErrorCode::Unauthenticated => WatchEndCode::Unauthenticated,
            _ => WatchEndCode::PermissionDenied,
        };
        Some((code, problem.detail))
    }
}
