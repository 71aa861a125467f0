//! One order: validations, and the certificate.

use std::time::Duration;

use instant_acme::{
    AuthorizationStatus, CertificateIdentifier, Identifier, NewOrder, Order, OrderStatus,
    RetryPolicy,
};

use crate::Acme;
use crate::answers::Pending;
use crate::certificate::Certificate;
use crate::error::AcmeError;

/// How an authority is asked whether it has validated or issued: after 250 ms, then at intervals that grow.
const POLLING: RetryPolicy = RetryPolicy::new().timeout(Duration::from_secs(120));

/// Orders that are begun when the authority refuses nonces. A request is made again with the new nonce (RFC 8555,
/// section 6.5), but not for ever; the pause after a failure is for others, such as validations, which authorities count.
const ORDERS: u32 = 3;

impl Acme {
    /// Gets a new certificate for the names, and keeps it in the state directory. `replaced` is the one that it takes the place
    /// of, if there is one, which some authorities count less strictly (RFC 9773, section 5).
    ///
    /// # Errors
    ///
    /// Whatever fails; nothing changes then.
    pub async fn obtain(&self, replaced: Option<&Certificate>) -> Result<Certificate, AcmeError> {
        for _ in 1..ORDERS {
            match self.order(replaced).await {
                Err(error) if error.is_refused_nonce() => {}
                result => return result,
            }
        }
        self.order(replaced).await
    }

    async fn order(&self, replaced: Option<&Certificate>) -> Result<Certificate, AcmeError> {
        let account = self.account().await?;
        let names = self.settings.names().iter();
        let names: Vec<Identifier> = names.map(|name| Identifier::Dns(name.clone())).collect();
        let replaced = replaced.and_then(|it| CertificateIdentifier::try_from(it.leaf()).ok());
        let plain = NewOrder::new(&names);
        let mut order = match replaced {
            Some(replaced) => match account
                .new_order(&NewOrder::new(&names).replaces(replaced))
                .await
            {
                Ok(order) => order,
                // The authority doesn't know replacements, or this one.
                Err(_) => account.new_order(&plain).await?,
            },
            None => account.new_order(&plain).await?,
        };
        // Answers are given until the order is decided.
        let pending = self.begin_validations(&mut order).await?;
        let status = order.poll_ready(&POLLING).await?;
        drop(pending);
        if status == OrderStatus::Invalid {
            return Err(AcmeError::Validation(why(&mut order).await));
        }
        let key = order.finalize().await?;
        let chain = order.poll_certificate(&POLLING).await?;
        let certificate = Certificate::from_pem(&chain, &key)?;
        if certificate.names() != self.settings.names() {
            return Err(AcmeError::Names(certificate.names().join(", ")));
        }
        self.store.keep_certificate(&certificate)?;
        Ok(certificate)
    }

    async fn begin_validations(&self, order: &mut Order) -> Result<Vec<Pending>, AcmeError> {
        let mut pending = Vec::new();
        let mut authorizations = order.authorizations();
        while let Some(authorization) = authorizations.next().await {
            let mut authorization = authorization?;
            if authorization.status == AuthorizationStatus::Valid {
                continue;
            }
            let name = authorization.identifier().to_string();
            let challenge = authorization.challenge(self.answers.kind());
            let mut challenge = challenge.ok_or_else(|| AcmeError::NoChallenge {
                name: name.clone(),
                kind: self.answers.kind_name(),
            })?;
            pending.push(self.answers.begin(&name, &challenge)?);
            challenge.set_ready().await?;
        }
        Ok(pending)
    }
}

/// What the authority says about validations that failed.
async fn why(order: &mut Order) -> String {
    let mut reasons = Vec::new();
    let mut authorizations = order.authorizations();
    while let Some(authorization) = authorizations.next().await {
        let Ok(mut authorization) = authorization else {
            continue;
        };
        let name = authorization.identifier().to_string();
        let Ok(state) = authorization.refresh().await else {
            continue;
        };
        let errors = state.challenges.iter().filter_map(|it| it.error.as_ref());
        reasons.extend(errors.map(|error| format!("{name}: {error}")));
    }
    if reasons.is_empty() {
        return "it gives no reason".to_owned();
    }
    reasons.join("; ")
}
