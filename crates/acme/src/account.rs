//! The account at the authority: made once, and kept.

use instant_acme::{Account, ExternalAccountKey, NewAccount};

use crate::Acme;
use crate::client::AuthorityClient;
use crate::error::AcmeError;

impl Acme {
    /// The account of an earlier run, or a new one.
    pub(crate) async fn account(&self) -> Result<Account, AcmeError> {
        let builder = Account::builder_with_http(Box::new(AuthorityClient(self.client.clone())));
        if let Some(credentials) = self.store.account()? {
            return Ok(builder.from_credentials(credentials).await?);
        }
        let contact: Vec<&str> = self
            .settings
            .contact_uris()
            .iter()
            .map(String::as_str)
            .collect();
        let new = NewAccount {
            contact: &contact,
            terms_of_service_agreed: true,
            only_return_existing: false,
        };
        let external = self.settings.external();
        let external = external.map(|it| ExternalAccountKey::new(it.id.clone(), &it.key));
        let directory = self.settings.directory().to_owned();
        let (account, credentials) = builder.create(&new, directory, external.as_ref()).await?;
        self.store.keep_account(&credentials)?;
        Ok(account)
    }
}
