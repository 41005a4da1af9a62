//! `/v1/access/tokens` and `/v1/access/tokens/{id}`.
//!
//! Owns their bodies and their answers, and that the secret of a token leaves the node once and stays nowhere. Never looks at a
//! token that somebody shows.

use quorate_api::{ErrorCode, Problem, Secret, TokenCreated, TokenList, TokenRemoved, TokenRequest, TokenView};
use quorate_machine::limits::{TOKEN_NOTE_BYTES_MAX, TTL_MS_MAX};
use quorate_machine::query::Observed;
use quorate_machine::types::{
    AccessOp, AccessReply, NewToken, NoTokenId, Reply, TokenId, TokenRow, UserName, WallMillis,
};
use quorate_node_core::gateway::auth::guard::Guard;
use quorate_node_core::gateway::auth::requirement::{self, Permission};
use quorate_node_core::gateway::failure::Failure;
use quorate_node_core::gateway::scan::scan;
use quorate_node_core::gateway::{propose, text};
use quorate_node_core::token_text::TokenText;
use utoipa_axum::routes;

use crate::access::own;
use crate::command;
use crate::context::Context;
use crate::coordinate;
use crate::described::{Common, Page, Reused};
use crate::input::extract::Faults;
use crate::input::json_body::Json;
use crate::output::response::{Outcome, created};
use crate::routes::{Policy, Routes};

pub fn routes() -> Routes {
    const ADMIN: Policy = Policy::node(Guard::Admin);
    Routes::new().all(ADMIN, [routes!(list), routes!(create), routes!(delete)])
}

/// Lists the tokens, by id. Those whose time is over are among them until their user gets another.
#[utoipa::path(get, path = "/v1/access/tokens", tag = "access", operation_id = "tokens",
    params(Page),
    responses(
        (status = 200, description = "A page.", body = TokenList, example = json!({"tokens": [{"id": "00c0ffee00c0ffee", "user": "app", "note": "ci", "created": "2026-11-22T01:06:00.123Z", "expires": "2026-11-23T01:06:00.123Z"}], "revision": "20", "index": 31})),
        Common,
    ))]
pub async fn list(context: Context) -> Outcome {
    let (limit, after) = coordinate::page_of(&context, |text| text.parse::<TokenId>().ok())?;
    context.admit_read(&requirement::on_prefix(Permission::Admin, b"")).await?;
    let Observed { at, wall, found } = scan(&context, move |backend| backend.tokens(after, limit)).await?;
    let last = found.items.last().map(|(id, _)| id.to_string());
    let wall = wall.max(context.api.node.wall_now());
    let tokens = found.items.iter().map(|(id, row)| view(*id, row, wall)).collect();
    let answer = TokenList { tokens, cursor: last.filter(|_| found.more), revision: at.revision, index: at.index };
    command::answer(&answer, at.revision, None)
}

/// Gives a user a token: who sends it as `Authorization: Bearer …` is that user.
///
/// The answer alone has the token; the cluster keeps a hash of it. A retry under the same request id does not show it again, and is
/// answered by `request_id_reused` where the first try was carried out: then look for the token in the list, remove it, and ask for
/// another.
#[utoipa::path(post, path = "/v1/access/tokens", tag = "access", operation_id = "create_token",
    request_body(content = TokenRequest, content_type = "application/json", example = json!({"user": "app", "expires_in_ms": 86400000, "note": "ci"})),
    responses(
        (status = 201, description = "The token.", body = TokenCreated, example = json!({"token": "qt_00c0ffee00c0ffee_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "id": "00c0ffee00c0ffee", "user": "app", "expires": "2026-11-23T01:06:00.123Z", "revision": "12", "index": 20})),
        (status = 404, description = "`not_found`: there is no such user.", body = Problem, content_type = "application/problem+json"),
        (status = 507, description = "`quota_exceeded`: the quota is used up or a disk nearly full; removals still work.", body = Problem, content_type = "application/problem+json"),
        Reused, Common,
    ))]
pub async fn create(context: Context, Json(request): Json<TokenRequest>) -> Outcome {
    let TokenRequest { user, expires_in_ms, note, request_id } = request;
    let (mut faults, note) = (Faults::default(), note.unwrap_or_default());
    let user = own::name(&user, "/user", &mut faults, UserName::new);
    faults.within("/expires_in_ms", expires_in_ms, 1..=TTL_MS_MAX);
    if note.len() > TOKEN_NOTE_BYTES_MAX {
        faults.add("/note", format!("at most {TOKEN_NOTE_BYTES_MAX} bytes, this one has {}", note.len()));
    }
    let user = context.with_request_id(request_id, faults.complete(user))?;
    let token = TokenText::make();
    let expires_at = expires_in_ms.map(|ms| context.api.node.wall_now().saturating_add(ms));
    let new = NewToken { id: token.id, user: user.clone(), hash: token.hash(), expires_at, note };
    match own::decide(&context, user.as_str(), AccessOp::AddToken(new)).await.map_err(say_lost)? {
        (Reply { revision, index, .. }, AccessReply::Token(_)) => {
            let answer = TokenCreated {
                token: Secret(token.reveal()),
                id: token.id.to_string(),
                user: user.to_string(),
                expires: expires_at.map(coordinate::moment),
                revision,
                index,
            };
            let location = format!("/v1/access/tokens/{}", answer.id);
            Ok(created(command::answer(&answer, revision, None)?, location))
        }
        (reply, _) => Err(propose::confused(&reply)),
    }
}

/// Removes a token. Whoever shows it is nobody from now on.
#[utoipa::path(delete, path = "/v1/access/tokens/{id}", tag = "access", operation_id = "delete_token",
    params(
        ("id" = String, Path, description = "Its public id: 16 digits of 0-9 and a-f.", example = "00c0ffee00c0ffee", min_length = 16, max_length = 16, pattern = "^[0-9a-f]{16}$"),
    ),
    responses(
        (status = 200, description = "It is gone.", body = TokenRemoved, example = json!({"id": "00c0ffee00c0ffee", "revision": "22", "index": 34})),
        (status = 404, description = "`not_found`: there is no such token.", body = Problem, content_type = "application/problem+json"),
        Reused, Common,
    ))]
pub async fn delete(context: Context) -> Outcome {
    let text = text::percent_decode(context.name()).map_err(|why| Failure::invalid("path:id", why))?;
    let id: TokenId = text.parse().map_err(|why: NoTokenId| Failure::invalid("path:id", why.to_string()))?;
    match own::decide(&context, &text, AccessOp::RemoveToken(id)).await? {
        (Reply { revision, index, replayed, .. }, AccessReply::Removed { .. }) => {
            command::answer(&TokenRemoved { id: id.to_string(), revision, index, replayed }, revision, None)
        }
        (reply, _) => Err(propose::confused(&reply)),
    }
}

/// Where a retry comes after a try that was carried out, what it made is of no use to anybody.
fn say_lost(failure: Failure) -> Failure {
    match failure.code() {
        ErrorCode::RequestIdReused => failure.saying(
            "the request id was used before; if that made a token, its secret was shown then and is kept nowhere: look for the \
             token in the list of tokens, remove it, and ask for another under another request id",
        ),
        _ => failure,
    }
}

fn view(id: TokenId, row: &TokenRow, wall: WallMillis) -> TokenView {
    TokenView {
        id: id.to_string(),
        user: row.user.to_string(),
        note: row.note.clone(),
        created: coordinate::moment(row.created),
        expires: row.expires_at.map(coordinate::moment),
        expired: row.is_expired_at(wall),
    }
}
