// Calls of tools by a Java library with what it has by default, as library_client.py says: LibraryClient LIBRARY URL CALLS.
import dev.langchain4j.agent.tool.ToolExecutionRequest;
import dev.langchain4j.mcp.client.DefaultMcpClient;
import dev.langchain4j.mcp.client.transport.http.StreamableHttpMcpTransport;
import io.modelcontextprotocol.client.McpClient;
import io.modelcontextprotocol.client.transport.HttpClientStreamableHttpTransport;
import io.modelcontextprotocol.spec.McpSchema;
import java.net.URI;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import tools.jackson.databind.ObjectMapper;

public class LibraryClient {
  interface Call {
    String of(String tool, Map<String, Object> arguments) throws Exception;
  }

  static final int AT_MOST = 30;
  static final Pattern AGAIN = Pattern.compile("has not run yet|timed? ?out|within 20000ms", Pattern.CASE_INSENSITIVE);
  static final ObjectMapper JSON = new ObjectMapper();

  static Call sdk(String url) {
    var transport = HttpClientStreamableHttpTransport.builder(URI.create(url).resolve("/").toString()).build();
    var client = McpClient.sync(transport).build();
    client.initialize();
    client.listTools();
    return (tool, arguments) -> {
      var result = client.callTool(McpSchema.CallToolRequest.builder(tool).arguments(arguments).build());
      return ((McpSchema.TextContent) result.content().get(0)).text();
    };
  }

  static Call langchain4j(String url) {
    var client = new DefaultMcpClient.Builder().transport(new StreamableHttpMcpTransport.Builder().url(url).build()).build();
    client.listTools();
    return (tool, arguments) ->
        client.executeTool(ToolExecutionRequest.builder().id("1").name(tool).arguments(JSON.writeValueAsString(arguments)).build()).resultText();
  }

  @SuppressWarnings("unchecked")
  public static void main(String[] words) throws Exception {
    var call = words[0].equals("java") ? sdk(words[1]) : langchain4j(words[1]);
    for (var one : JSON.readValue(words[2], List.class)) {
      var parts = (List<Object>) one;
      for (int left = parts.get(2).equals(false) ? 1 : AT_MOST; left > 0; left -= 1) {
        Map<String, Object> outcome;
        try {
          outcome = Map.of("text", call.of((String) parts.get(0), (Map<String, Object>) parts.get(1)));
        } catch (Exception error) {
          outcome = Map.of("error", error.getClass().getSimpleName() + ": " + error.getMessage());
        }
        System.out.println(JSON.writeValueAsString(outcome));
        if (!AGAIN.matcher(outcome.toString()).find()) break;
      }
    }
    Thread.sleep(Long.parseLong(System.getenv().getOrDefault("LINGER_MS", "0")));
    System.exit(0);
  }
}
