//! What a server answers where it does not do what it was asked: codes of gRPC, and etcd's own texts, which clients compare.

/// A status code of gRPC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum Code {
    Ok = 0,
    Cancelled = 1,
    Unknown = 2,
    InvalidArgument = 3,
    DeadlineExceeded = 4,
    NotFound = 5,
    AlreadyExists = 6,
    PermissionDenied = 7,
    ResourceExhausted = 8,
    FailedPrecondition = 9,
    Aborted = 10,
    OutOfRange = 11,
    Unimplemented = 12,
    Internal = 13,
    Unavailable = 14,
    DataLoss = 15,
    Unauthenticated = 16,
}

impl Code {
    /// The status of an answer over HTTP, as etcd's gateway has it.
    pub const fn http_status(self) -> u16 {
        match self {
            Self::Ok => 200,
            Self::InvalidArgument | Self::FailedPrecondition | Self::OutOfRange => 400,
            Self::Unauthenticated => 401,
            Self::PermissionDenied => 403,
            Self::NotFound => 404,
            Self::AlreadyExists | Self::Aborted => 409,
            Self::ResourceExhausted => 429,
            Self::Cancelled => 499,
            Self::Unknown | Self::Internal | Self::DataLoss => 500,
            Self::Unimplemented => 501,
            Self::Unavailable => 503,
            Self::DeadlineExceeded => 504,
        }
    }
}

/// An error of etcd's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Error {
    EmptyKey,
    KeyNotFound,
    ValueProvided,
    LeaseProvided,
    TooManyOps,
    DuplicateKey,
    InvalidClientAPIVersion,
    InvalidSortOption,
    Compacted,
    FutureRev,
    NoSpace,
    LeaseNotFound,
    LeaseExist,
    LeaseTTLTooLarge,
    WatchCanceled,
    MemberExist,
    PeerURLExist,
    MemberNotEnoughStarted,
    MemberBadURLs,
    MemberNotFound,
    MemberNotLearner,
    LearnerNotReady,
    TooManyLearners,
    ClusterIDMismatch,
    RequestTooLarge,
    RequestTooManyRequests,
    RootUserNotExist,
    RootRoleNotExist,
    UserAlreadyExist,
    UserEmpty,
    UserNotFound,
    RoleAlreadyExist,
    RoleNotFound,
    RoleEmpty,
    AuthFailed,
    PermissionNotGiven,
    PermissionDenied,
    RoleNotGranted,
    PermissionNotGranted,
    AuthNotEnabled,
    InvalidAuthToken,
    InvalidAuthMgmt,
    AuthOldRevision,
    NoLeader,
    NotLeader,
    LeaderChanged,
    NotCapable,
    Stopped,
    Timeout,
    TimeoutDueToLeaderFail,
    TimeoutDueToConnectionLost,
    TimeoutWaitAppliedIndex,
    Unhealthy,
    Corrupt,
    NotSupportedForLearner,
    BadLeaderTransferee,
    WrongDowngradeVersionFormat,
    InvalidDowngradeTargetVersion,
    ClusterVersionUnavailable,
    DowngradeInProcess,
    NoInflightDowngrade,
    Canceled,
    DeadlineExceeded,
}

impl Error {
    /// All of them.
    pub const ALL: [Self; 63] = [
        Self::EmptyKey,
        Self::KeyNotFound,
        Self::ValueProvided,
        Self::LeaseProvided,
        Self::TooManyOps,
        Self::DuplicateKey,
        Self::InvalidClientAPIVersion,
        Self::InvalidSortOption,
        Self::Compacted,
        Self::FutureRev,
        Self::NoSpace,
        Self::LeaseNotFound,
        Self::LeaseExist,
        Self::LeaseTTLTooLarge,
        Self::WatchCanceled,
        Self::MemberExist,
        Self::PeerURLExist,
        Self::MemberNotEnoughStarted,
        Self::MemberBadURLs,
        Self::MemberNotFound,
        Self::MemberNotLearner,
        Self::LearnerNotReady,
        Self::TooManyLearners,
        Self::ClusterIDMismatch,
        Self::RequestTooLarge,
        Self::RequestTooManyRequests,
        Self::RootUserNotExist,
        Self::RootRoleNotExist,
        Self::UserAlreadyExist,
        Self::UserEmpty,
        Self::UserNotFound,
        Self::RoleAlreadyExist,
        Self::RoleNotFound,
        Self::RoleEmpty,
        Self::AuthFailed,
        Self::PermissionNotGiven,
        Self::PermissionDenied,
        Self::RoleNotGranted,
        Self::PermissionNotGranted,
        Self::AuthNotEnabled,
        Self::InvalidAuthToken,
        Self::InvalidAuthMgmt,
        Self::AuthOldRevision,
        Self::NoLeader,
        Self::NotLeader,
        Self::LeaderChanged,
        Self::NotCapable,
        Self::Stopped,
        Self::Timeout,
        Self::TimeoutDueToLeaderFail,
        Self::TimeoutDueToConnectionLost,
        Self::TimeoutWaitAppliedIndex,
        Self::Unhealthy,
        Self::Corrupt,
        Self::NotSupportedForLearner,
        Self::BadLeaderTransferee,
        Self::WrongDowngradeVersionFormat,
        Self::InvalidDowngradeTargetVersion,
        Self::ClusterVersionUnavailable,
        Self::DowngradeInProcess,
        Self::NoInflightDowngrade,
        Self::Canceled,
        Self::DeadlineExceeded,
    ];

    /// The code that goes with it.
    pub const fn code(self) -> Code {
        self.known().0
    }

    /// Its text, word for word.
    pub const fn text(self) -> &'static str {
        self.known().1
    }

    const fn known(self) -> (Code, &'static str) {
        match self {
            Self::EmptyKey => (Code::InvalidArgument, "etcdserver: key is not provided"),
            Self::KeyNotFound => (Code::InvalidArgument, "etcdserver: key not found"),
            Self::ValueProvided => (Code::InvalidArgument, "etcdserver: value is provided"),
            Self::LeaseProvided => (Code::InvalidArgument, "etcdserver: lease is provided"),
            Self::TooManyOps => (Code::InvalidArgument, "etcdserver: too many operations in txn request"),
            Self::DuplicateKey => (Code::InvalidArgument, "etcdserver: duplicate key given in txn request"),
            Self::InvalidClientAPIVersion => (Code::InvalidArgument, "etcdserver: invalid client api version"),
            Self::InvalidSortOption => (Code::InvalidArgument, "etcdserver: invalid sort option"),
            Self::Compacted => (Code::OutOfRange, "etcdserver: mvcc: required revision has been compacted"),
            Self::FutureRev => (Code::OutOfRange, "etcdserver: mvcc: required revision is a future revision"),
            Self::NoSpace => (Code::ResourceExhausted, "etcdserver: mvcc: database space exceeded"),
            Self::LeaseNotFound => (Code::NotFound, "etcdserver: requested lease not found"),
            Self::LeaseExist => (Code::FailedPrecondition, "etcdserver: lease already exists"),
            Self::LeaseTTLTooLarge => (Code::OutOfRange, "etcdserver: too large lease TTL"),
            Self::WatchCanceled => (Code::Cancelled, "etcdserver: watch canceled"),
            Self::MemberExist => (Code::FailedPrecondition, "etcdserver: member ID already exist"),
            Self::PeerURLExist => (Code::FailedPrecondition, "etcdserver: Peer URLs already exists"),
            Self::MemberNotEnoughStarted => {
                (Code::FailedPrecondition, "etcdserver: re-configuration failed due to not enough started members")
            }
            Self::MemberBadURLs => (Code::InvalidArgument, "etcdserver: given member URLs are invalid"),
            Self::MemberNotFound => (Code::NotFound, "etcdserver: member not found"),
            Self::MemberNotLearner => (Code::FailedPrecondition, "etcdserver: can only promote a learner member"),
            Self::LearnerNotReady => {
                (Code::FailedPrecondition, "etcdserver: can only promote a learner member which is in sync with leader")
            }
            Self::TooManyLearners => (Code::FailedPrecondition, "etcdserver: too many learner members in cluster"),
            Self::ClusterIDMismatch => (Code::FailedPrecondition, "etcdserver: cluster ID mismatch"),
            Self::RequestTooLarge => (Code::InvalidArgument, "etcdserver: request is too large"),
            Self::RequestTooManyRequests => (Code::ResourceExhausted, "etcdserver: too many requests"),
            Self::RootUserNotExist => (Code::FailedPrecondition, "etcdserver: root user does not exist"),
            Self::RootRoleNotExist => (Code::FailedPrecondition, "etcdserver: root user does not have root role"),
            Self::UserAlreadyExist => (Code::FailedPrecondition, "etcdserver: user name already exists"),
            Self::UserEmpty => (Code::InvalidArgument, "etcdserver: user name is empty"),
            Self::UserNotFound => (Code::FailedPrecondition, "etcdserver: user name not found"),
            Self::RoleAlreadyExist => (Code::FailedPrecondition, "etcdserver: role name already exists"),
            Self::RoleNotFound => (Code::FailedPrecondition, "etcdserver: role name not found"),
            Self::RoleEmpty => (Code::InvalidArgument, "etcdserver: role name is empty"),
            Self::AuthFailed => {
                (Code::InvalidArgument, "etcdserver: authentication failed, invalid user ID or password")
            }
            Self::PermissionNotGiven => (Code::InvalidArgument, "etcdserver: permission not given"),
            Self::PermissionDenied => (Code::PermissionDenied, "etcdserver: permission denied"),
            Self::RoleNotGranted => (Code::FailedPrecondition, "etcdserver: role is not granted to the user"),
            Self::PermissionNotGranted => {
                (Code::FailedPrecondition, "etcdserver: permission is not granted to the role")
            }
            Self::AuthNotEnabled => (Code::FailedPrecondition, "etcdserver: authentication is not enabled"),
            Self::InvalidAuthToken => (Code::Unauthenticated, "etcdserver: invalid auth token"),
            Self::InvalidAuthMgmt => (Code::InvalidArgument, "etcdserver: invalid auth management"),
            Self::AuthOldRevision => (Code::InvalidArgument, "etcdserver: revision of auth store is old"),
            Self::NoLeader => (Code::Unavailable, "etcdserver: no leader"),
            Self::NotLeader => (Code::FailedPrecondition, "etcdserver: not leader"),
            Self::LeaderChanged => (Code::Unavailable, "etcdserver: leader changed"),
            Self::NotCapable => (Code::FailedPrecondition, "etcdserver: not capable"),
            Self::Stopped => (Code::Unavailable, "etcdserver: server stopped"),
            Self::Timeout => (Code::Unavailable, "etcdserver: request timed out"),
            Self::TimeoutDueToLeaderFail => {
                (Code::Unavailable, "etcdserver: request timed out, possibly due to previous leader failure")
            }
            Self::TimeoutDueToConnectionLost => {
                (Code::Unavailable, "etcdserver: request timed out, possibly due to connection lost")
            }
            Self::TimeoutWaitAppliedIndex => {
                (Code::Unavailable, "etcdserver: request timed out, waiting for the applied index took too long")
            }
            Self::Unhealthy => (Code::Unavailable, "etcdserver: unhealthy cluster"),
            Self::Corrupt => (Code::DataLoss, "etcdserver: corrupt cluster"),
            Self::NotSupportedForLearner => (Code::FailedPrecondition, "etcdserver: rpc not supported for learner"),
            Self::BadLeaderTransferee => (Code::FailedPrecondition, "etcdserver: bad leader transferee"),
            Self::WrongDowngradeVersionFormat => {
                (Code::InvalidArgument, "etcdserver: wrong downgrade target version format")
            }
            Self::InvalidDowngradeTargetVersion => {
                (Code::InvalidArgument, "etcdserver: invalid downgrade target version")
            }
            Self::ClusterVersionUnavailable => {
                (Code::FailedPrecondition, "etcdserver: cluster version not found during downgrade")
            }
            Self::DowngradeInProcess => {
                (Code::FailedPrecondition, "etcdserver: cluster has a downgrade job in progress")
            }
            Self::NoInflightDowngrade => (Code::FailedPrecondition, "etcdserver: no inflight downgrade job"),
            Self::Canceled => (Code::Cancelled, "etcdserver: request canceled"),
            Self::DeadlineExceeded => (Code::DeadlineExceeded, "etcdserver: context deadline exceeded"),
        }
    }
}
