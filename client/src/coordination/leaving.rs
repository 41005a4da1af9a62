//! What is taken back when the one who asked for it does not wait any more.
//!
//! Owns the order: what is on its way is decided before it is taken back, or it could take effect afterwards and leave a place
//! that nobody knows of in a queue. What nobody waits for works in the background, on the runtime of the session.

use crate::call::error::Error;
use crate::call::request::Call;
use crate::coordination::session::Session;

/// Takes back on drop what was asked for, unless that was settled.
#[derive(Debug)]
pub(crate) struct Leaving {
    session: Session,
    /// Its path.
    place: String,
    /// The question that is on its way, under its own request id but without a wait: to repeat it is to learn its outcome.
    asked: Option<Call>,
    /// What takes it back.
    give_up: Option<Call>,
}

impl Leaving {
    /// Nothing was asked yet; `give_up` is sent on drop. Waits until an earlier one has been.
    pub async fn begin(session: &Session, place: String, give_up: Call) -> Self {
        session.left(&place).await;
        Self { session: session.clone(), place, asked: None, give_up: Some(give_up) }
    }

    /// A question goes out. `again` is the same, to be answered at once.
    pub fn on_asked(&mut self, again: Call) {
        self.asked = Some(again);
    }

    /// It was answered: there is nothing on its way.
    pub fn on_answered(&mut self) {
        self.asked = None;
    }

    /// Takes it back before the caller goes on. Where that fails, it is tried once more on drop.
    pub async fn leave(&mut self) -> Result<(), Error> {
        let Some(give_up) = self.give_up.clone() else { return Ok(()) };
        take_back(&self.session, self.asked.clone(), give_up).await?;
        self.settle();
        Ok(())
    }

    /// The answer was about another place: calls for that one wait until it is taken back.
    pub fn is_at(&mut self, place: String) {
        self.place = place;
    }

    /// There is nothing to take back.
    pub fn settle(&mut self) {
        self.give_up = None;
    }
}

impl Drop for Leaving {
    fn drop(&mut self) {
        let Some(give_up) = self.give_up.take() else { return };
        if self.session.loss().is_some() {
            return;
        }
        let (session, asked) = (self.session.clone(), self.asked.take());
        self.session.give_up(std::mem::take(&mut self.place), async move {
            // If neither reaches a node, the end of the session takes it back.
            let _ = take_back(&session, asked, give_up).await;
        });
    }
}

async fn take_back(session: &Session, asked: Option<Call>, give_up: Call) -> Result<(), Error> {
    if let Some(asked) = asked {
        match session.client().send(&asked).await {
            Ok(_) | Err(Error::Rejected(_)) => {}
            Err(unknown) => return Err(unknown),
        }
    }
    session.client().send(&give_up).await.map(drop)
}
