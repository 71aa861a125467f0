//! Regular requests that show whether an upstream works.

use std::sync::Weak;
use std::time::Duration;

use http::{Request, Version};
use tokio::time::{Instant, sleep, timeout};

use super::Member;
use crate::web::body::Body;
use crate::web::proxy::ProxyError;

/// A request that a healthy upstream answers with a status from 200 to 399.
#[derive(Clone, Debug)]
pub struct HealthCheck {
    /// Path and query.
    pub path: http::uri::PathAndQuery,
    /// Time between the end of a check and the next one. Default of the command line: 10 s.
    pub interval: Duration,
    /// Time after which an upstream counts as failing.
    pub timeout: Duration,
}

impl HealthCheck {
    /// Checks `member` until it is dropped.
    pub(super) fn start(&self, member: Weak<Member>) {
        let check = self.clone();
        tokio::spawn(async move {
            loop {
                let Some(member) = member.upgrade() else {
                    return;
                };
                check.run(&member).await;
                drop(member);
                sleep(check.interval).await;
            }
        });
    }

    async fn run(&self, member: &Member) {
        let mut request = Request::new(Body::empty());
        *request.uri_mut() = self.path.clone().into();
        *request.version_mut() = Version::HTTP_11;
        let answer = timeout(self.timeout, member.proxy.forward(request)).await;
        match answer {
            Ok(Ok(response)) if (200..400).contains(&response.status().as_u16()) => {
                member.health.on_answer();
            }
            // That all connections are in use says nothing about it.
            Ok(Err(ProxyError::Busy)) => {}
            _ => member.health.on_failure(Instant::now()),
        }
    }
}
