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

/// Defines etcd's errors, each with the code that goes with it and its text, word for word.
macro_rules! errors {
    ($($name:ident = $code:ident $text:literal,)*) => {
        /// An error of etcd's.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Error {
            $($name),*
        }

        impl Error {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// The code that goes with it.
            pub const fn code(self) -> Code {
                match self {
                    $(Self::$name => Code::$code),*
                }
            }

            /// Its text, word for word.
            pub const fn text(self) -> &'static str {
                match self {
                    $(Self::$name => $text),*
                }
            }
        }
    };
}

errors! {
    EmptyKey = InvalidArgument "etcdserver: key is not provided",
    KeyNotFound = InvalidArgument "etcdserver: key not found",
    ValueProvided = InvalidArgument "etcdserver: value is provided",
    LeaseProvided = InvalidArgument "etcdserver: lease is provided",
    TooManyOps = InvalidArgument "etcdserver: too many operations in txn request",
    DuplicateKey = InvalidArgument "etcdserver: duplicate key given in txn request",
    InvalidClientAPIVersion = InvalidArgument "etcdserver: invalid client api version",
    InvalidSortOption = InvalidArgument "etcdserver: invalid sort option",
    Compacted = OutOfRange "etcdserver: mvcc: required revision has been compacted",
    FutureRev = OutOfRange "etcdserver: mvcc: required revision is a future revision",
    NoSpace = ResourceExhausted "etcdserver: mvcc: database space exceeded",
    LeaseNotFound = NotFound "etcdserver: requested lease not found",
    LeaseExist = FailedPrecondition "etcdserver: lease already exists",
    LeaseTTLTooLarge = OutOfRange "etcdserver: too large lease TTL",
    WatchCanceled = Cancelled "etcdserver: watch canceled",
    MemberExist = FailedPrecondition "etcdserver: member ID already exist",
    PeerURLExist = FailedPrecondition "etcdserver: Peer URLs already exists",
    MemberNotEnoughStarted = FailedPrecondition "etcdserver: re-configuration failed due to not enough started members",
    MemberBadURLs = InvalidArgument "etcdserver: given member URLs are invalid",
    MemberNotFound = NotFound "etcdserver: member not found",
    MemberNotLearner = FailedPrecondition "etcdserver: can only promote a learner member",
    LearnerNotReady = FailedPrecondition "etcdserver: can only promote a learner member which is in sync with leader",
    TooManyLearners = FailedPrecondition "etcdserver: too many learner members in cluster",
    ClusterIDMismatch = FailedPrecondition "etcdserver: cluster ID mismatch",
    RequestTooLarge = InvalidArgument "etcdserver: request is too large",
    RequestTooManyRequests = ResourceExhausted "etcdserver: too many requests",
    RootUserNotExist = FailedPrecondition "etcdserver: root user does not exist",
    RootRoleNotExist = FailedPrecondition "etcdserver: root user does not have root role",
    UserAlreadyExist = FailedPrecondition "etcdserver: user name already exists",
    UserEmpty = InvalidArgument "etcdserver: user name is empty",
    UserNotFound = FailedPrecondition "etcdserver: user name not found",
    RoleAlreadyExist = FailedPrecondition "etcdserver: role name already exists",
    RoleNotFound = FailedPrecondition "etcdserver: role name not found",
    RoleEmpty = InvalidArgument "etcdserver: role name is empty",
    AuthFailed = InvalidArgument "etcdserver: authentication failed, invalid user ID or password",
    PermissionNotGiven = InvalidArgument "etcdserver: permission not given",
    PermissionDenied = PermissionDenied "etcdserver: permission denied",
    RoleNotGranted = FailedPrecondition "etcdserver: role is not granted to the user",
    PermissionNotGranted = FailedPrecondition "etcdserver: permission is not granted to the role",
    AuthNotEnabled = FailedPrecondition "etcdserver: authentication is not enabled",
    InvalidAuthToken = Unauthenticated "etcdserver: invalid auth token",
    InvalidAuthMgmt = InvalidArgument "etcdserver: invalid auth management",
    AuthOldRevision = InvalidArgument "etcdserver: revision of auth store is old",
    NoLeader = Unavailable "etcdserver: no leader",
    NotLeader = FailedPrecondition "etcdserver: not leader",
    LeaderChanged = Unavailable "etcdserver: leader changed",
    NotCapable = FailedPrecondition "etcdserver: not capable",
    Stopped = Unavailable "etcdserver: server stopped",
    Timeout = Unavailable "etcdserver: request timed out",
    TimeoutDueToLeaderFail = Unavailable "etcdserver: request timed out, possibly due to previous leader failure",
    TimeoutDueToConnectionLost = Unavailable "etcdserver: request timed out, possibly due to connection lost",
    TimeoutWaitAppliedIndex = Unavailable "etcdserver: request timed out, waiting for the applied index took too long",
    Unhealthy = Unavailable "etcdserver: unhealthy cluster",
    Corrupt = DataLoss "etcdserver: corrupt cluster",
    NotSupportedForLearner = FailedPrecondition "etcdserver: rpc not supported for learner",
    BadLeaderTransferee = FailedPrecondition "etcdserver: bad leader transferee",
    WrongDowngradeVersionFormat = InvalidArgument "etcdserver: wrong downgrade target version format",
    InvalidDowngradeTargetVersion = InvalidArgument "etcdserver: invalid downgrade target version",
    ClusterVersionUnavailable = FailedPrecondition "etcdserver: cluster version not found during downgrade",
    DowngradeInProcess = FailedPrecondition "etcdserver: cluster has a downgrade job in progress",
    NoInflightDowngrade = FailedPrecondition "etcdserver: no inflight downgrade job",
    Canceled = Cancelled "etcdserver: request canceled",
    DeadlineExceeded = DeadlineExceeded "etcdserver: context deadline exceeded",
}
