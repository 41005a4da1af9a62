//! The audit trail of a key: who changed it, and when.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::answers::answers;
use super::decimal;
use super::error_code::ErrorCode;
use super::name::{Name, named};

answers! {
    /// A page of the trail: the answer of `GET /v1/audit`.
    #[derive(Eq)]
    #[serde(remote = "Self")]
    pub struct AuditAnswer: at {
        /// The key.
        pub key: Name,
        /// What was decided about it, in order.
        pub lines: Vec<AuditView>,
        /// For the next page, while there may be more.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub cursor: Option<String>,
        /// Changes of before this revision are compacted; refusals are kept for 15 minutes at least.
        #[serde(with = "decimal")]
        #[schema(schema_with = decimal::shown)]
        pub oldest_revision: u64,
    }
}

named!(AuditAnswer, key);

/// One decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct AuditView {
    /// The revision that it took, or at which it was refused.
    #[serde(with = "decimal")]
    #[schema(schema_with = decimal::shown)]
    pub revision: u64,
    /// Log index that decided it.
    pub index: u64,
    /// When, by the cluster's wall clock.
    #[schema(format = DateTime)]
    pub time: String,
    /// What was asked. Of an entry: `insert`, `upsert`, `replace`, `update`, `remove`, `touch`, `lock`, `extend`, `unlock`, `claim`, and
    /// `expire`, which nobody asks for. Of what is coordinated: `session_create`, `session_end`, `session_expire`, `acquire`, `grant`,
    /// `release`, `give_up`, `proclaim`, `barrier`, `latch`. Of tasks: `task_schedule`, `task_claim`, `task_extend`, `task_complete`,
    /// `task_fail`, `task_cancel`, `task_requeue`, `task_plan`, `task_run_out`, `task_forget`. And `txn` and `where`, where such a request
    /// was refused as a whole, `rules`, `numbers`, `user_set`, `user_remove`, `role_set`, `role_remove`, `token_add`, `token_remove`,
    /// `member_invite`, `invitation_revoke`, `member_admit`, `member_remove`, `quota_set`, `quota_remove`, `faults`, `unknown`.
    pub op: String,
    /// What came of it: `changed`, `removed`, `relocked`, `refused`, `beside` or `elected`.
    pub effect: String,
    /// Why it was refused: the code that was answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<ErrorCode>,
    /// Who asked; absent where that was nobody in particular, or the cluster itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
    /// Under which request id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}
