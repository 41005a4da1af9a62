//! Who may ask: etcd's service `Auth`, first half. The second is [`users`](super::users) and [`roles`](super::roles).
//!
//! Our users have tokens and no passwords. The password of a user is any of its tokens, here: clients that are configured with a name
//! and a password log in with them, and get the token back. Whether anybody has to is said by the configuration of the nodes.

use http::{HeaderMap, HeaderValue, header};
use quorate_api::ErrorCode;
use quorate_etcd_api::Error;
use quorate_etcd_api::auth::{
    AuthDisableRequest, AuthDisableResponse, AuthEnableRequest, AuthEnableResponse, AuthStatusRequest,
    AuthStatusResponse, AuthenticateRequest, AuthenticateResponse,
};
use quorate_machine::types::ROOT;
use quorate_node_core::gateway::call::Call;
use quorate_node_core::gateway::enter;
use tonic::Code;

use crate::header::header as answered;
use crate::status::{Status, known};

/// Exchanges a name and a password for a token.
pub async fn authenticate(call: &Call, request: AuthenticateRequest) -> Result<AuthenticateResponse, Status> {
    if call.api.auth.is_open() {
        return Err(known(Error::AuthNotEnabled));
    }
    let AuthenticateRequest { name, password } = request;
    let failed = || known(Error::AuthFailed);
    let bearer = HeaderValue::from_str(&format!("Bearer {password}")).map_err(|_| failed())?;
    let headers = HeaderMap::from_iter([(header::AUTHORIZATION, bearer)]);
    // A stranger is not told whether name or password was wrong.
    let who = enter::identify(call, &headers).await.map_err(|failure| match failure.code() {
        ErrorCode::Unauthenticated => failed(),
        _ => failure.into(),
    })?;
    if who.name() != name {
        let neighbour = call.origin.neighbour();
        let wrong = call.api.auth.unknown(neighbour, "the token is not of the user who is said to ask");
        return Err(match wrong.code() {
            ErrorCode::Unauthenticated => failed(),
            _ => wrong.into(),
        });
    }
    let header = Some(answered(&call.api, call.api.node.position().revision));
    Ok(AuthenticateResponse { header, token: password })
}

/// Tells whether callers have to say who they are.
pub async fn status(call: &Call, _: AuthStatusRequest) -> Result<AuthStatusResponse, Status> {
    let backend = &call.api.node;
    Ok(AuthStatusResponse {
        header: Some(answered(&call.api, backend.position().revision)),
        enabled: !call.api.auth.is_open(),
        auth_revision: backend.access_revision(),
    })
}

/// Changes nothing: nodes that ask nobody who they are do so because they were started so.
pub async fn enable(call: &Call, _: AuthEnableRequest) -> Result<AuthEnableResponse, Status> {
    if call.api.auth.is_open() {
        let why =
            "quorate: authentication is turned on where nodes are started: --auth required, and --root-token-file";
        return Err(Status::new(Code::FailedPrecondition, why));
    }
    Ok(AuthEnableResponse { header: Some(answered(&call.api, call.api.node.position().revision)) })
}

/// Changes nothing, either.
pub async fn disable(call: &Call, _: AuthDisableRequest) -> Result<AuthDisableResponse, Status> {
    if !call.api.auth.is_open() {
        let why = "quorate: authentication is turned off where nodes are started: --auth off";
        return Err(Status::new(Code::FailedPrecondition, why));
    }
    Ok(AuthDisableResponse { header: Some(answered(&call.api, call.api.node.position().revision)) })
}

/// Whether a name is that of the user who may do everything, and whom nobody makes.
pub fn is_root(name: &str) -> bool {
    name == ROOT
}
