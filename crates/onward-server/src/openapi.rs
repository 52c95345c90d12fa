//! The description of the API, generated from the code that serves it.

use utoipa::openapi::{
    ContactBuilder, Info, InfoBuilder, LicenseBuilder, OpenApi, OpenApiBuilder, SecurityRequirement,
    security::{Http, HttpAuthScheme, SecurityScheme},
};

/// The OpenAPI 3.1 document as JSON text, the same that `/openapi.json` serves.
pub fn openapi_json() -> String {
    let (_, description) = crate::api::routes().split_for_parts();
    description.to_pretty_json().unwrap_or_default()
}

/// What stands before the paths.
pub(crate) fn head() -> OpenApi {
    let mut head = OpenApiBuilder::new().info(info()).build();
    let bearer = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
    let components = head.components.get_or_insert_default();
    components.add_security_scheme("token", bearer);
    head.security = Some(vec![SecurityRequirement::default(), SecurityRequirement::new("token", [""; 0])]);
    head
}

fn info() -> Info {
    InfoBuilder::new()
        .title("Onward")
        .description(Some(
            "Asynchronous work that doesn't get lost: queues, jobs and dead letters over HTTP.",
        ))
        .version(env!("CARGO_PKG_VERSION"))
        .license(Some(LicenseBuilder::new().name("Apache-2.0 OR MIT").build()))
        .contact(Some(ContactBuilder::new().name(Some("Onward")).build()))
        .build()
}
