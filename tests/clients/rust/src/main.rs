//! The official Rust SDK as a client: rust-client URL MODE STEPS, as python_client.py says.
use std::env;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult,
    ElicitationAction, ElicitationCapability, Implementation, ProgressNotificationParam,
    ProtocolVersion,
};
use rmcp::service::{NotificationContext, RequestContext, RunningService, ServiceError};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{ClientHandler, ClientLifecycleMode, ClientServiceExt, ErrorData, RoleClient};
use serde_json::{Value, json};

const CANCEL_AFTER: Duration = Duration::from_millis(1500);

#[derive(Clone)]
struct Client {
    heard: Arc<Mutex<Vec<[f64; 2]>>>,
    config: ClientConfig,
}

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        self.config.clone()
    }

    async fn create_elicitation(
        &self,
        _: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        Ok(ElicitResult::new(ElicitationAction::Accept).with_content(json!({"name": "Ada"})))
    }

    /// The SDK gives each request a token; what the server says of its own work names a total.
    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        if let Some(total) = params.total {
            self.heard.lock().unwrap().push([params.progress, total]);
        }
    }
}

async fn take(
    service: &RunningService<RoleClient, Client>,
    step: &[Value],
) -> Result<Value, ServiceError> {
    let action = step[0].as_str().unwrap_or_default();
    if action == "list" {
        let tools = service.list_all_tools().await?;
        return Ok(
            json!({"tools": tools.iter().map(|tool| tool.name.as_ref()).collect::<Vec<_>>()}),
        );
    }
    if action == "wait" {
        let mut line = String::new();
        let _ = std::io::stdin().read_line(&mut line);
        return Ok(json!({"line": line.trim()}));
    }
    let tool = step[1].as_str().unwrap_or_default().to_owned();
    let arguments = step[2].as_object().cloned().unwrap_or_default();
    let call = service.call_tool(CallToolRequestParams::new(tool).with_arguments(arguments));
    let result = if action == "cancel" {
        match tokio::time::timeout(CANCEL_AFTER, call).await {
            Ok(result) => result?,
            Err(_) => {
                return Err(ServiceError::Timeout {
                    timeout: CANCEL_AFTER,
                });
            }
        }
    } else {
        call.await?
    };
    let said = serde_json::to_value(&result.content).unwrap_or_default();
    Ok(json!({"text": said[0]["text"], "isError": result.is_error.unwrap_or(false)}))
}

fn mode_of(word: &str) -> ClientLifecycleMode {
    let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
    match word {
        "legacy" => ClientLifecycleMode::Initialize,
        "auto" => ClientLifecycleMode::Auto {
            preferred_versions,
            legacy_version: Some(ProtocolVersion::V_2025_11_25),
        },
        _ => ClientLifecycleMode::Discover { preferred_versions },
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = env::args().collect();
    let steps: Vec<Vec<Value>> = serde_json::from_str(&words[3])?;
    let mut capabilities = ClientCapabilities::default();
    capabilities.elicitation = Some(ElicitationCapability::new().with_form(Default::default()));
    let client = Client {
        heard: Arc::default(),
        config: ClientConfig::new(capabilities, Implementation::new("rust-client", "1.0.0")),
    };
    let transport = StreamableHttpClientTransport::from_config(
        StreamableHttpClientTransportConfig::with_uri(words[1].as_str()).auth_header("client"),
    );
    let heard = client.heard.clone();
    let service = client
        .serve_with_lifecycle(transport, mode_of(&words[2]))
        .await?;
    println!(
        "{}",
        json!({"version": service.peer().peer_info().map(|info| info.protocol_version.to_string())})
    );
    for step in &steps {
        println!(
            "{}",
            match take(&service, step).await {
                Ok(outcome) => outcome,
                Err(ServiceError::McpError(error)) =>
                    json!({"error": {"code": error.code.0, "message": error.message}}),
                Err(error) => json!({"failure": error.to_string()}),
            }
        );
    }
    println!("{}", json!({"progress": *heard.lock().unwrap()}));
    service.cancel().await?;
    Ok(())
}
