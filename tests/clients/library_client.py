"""Calls of tools by a library with what it has by default: `library_client.py LIBRARY URL CALLS`.

CALLS is a JSON list of [tool, arguments, again], made one after the other by one agent. With `again`, the agent repeats a
call that failed or has not run yet. For each call, prints one line of JSON: the text that the library hands to its model,
or the error that ends its run. LINGER_MS is how long it stays after the last one. Each function below is one library: it gives the function that makes a call.
"""

import asyncio
import json
import os
import re
import sys
from contextlib import asynccontextmanager

AT_MOST = 30


def text_of(content):
    return content if isinstance(content, str) else json.dumps(content)


@asynccontextmanager
async def mcp(url):
    from mcp import ClientSession
    from mcp.client.streamable_http import streamablehttp_client

    async with streamablehttp_client(url) as (read, write, _), ClientSession(read, write) as session:
        await session.initialize()
        await session.list_tools()

        async def call(tool, arguments):
            return (await session.call_tool(tool, arguments)).content[0].text

        yield call


@asynccontextmanager
async def mcp_2(url):
    from mcp import Client

    async with Client(url) as client:
        await client.list_tools()

        async def call(tool, arguments):
            return (await client.call_tool(tool, arguments)).content[0].text

        yield call


@asynccontextmanager
async def fastmcp(url):
    from fastmcp import Client

    async with Client(url) as client:
        await client.list_tools()

        async def call(tool, arguments):
            return (await client.call_tool(tool, arguments)).content[0].text

        yield call


@asynccontextmanager
async def langchain(url):
    from langchain_mcp_adapters.client import MultiServerMCPClient

    tools = await MultiServerMCPClient({"server": {"transport": "streamable_http", "url": url}}).get_tools()
    named = {tool.name: tool for tool in tools}

    async def call(tool, arguments):
        message = await named[tool].ainvoke({"type": "tool_call", "id": "1", "name": tool, "args": arguments})
        return message.content if isinstance(message.content, str) else message.content[0]["text"]

    yield call


@asynccontextmanager
async def mcp_use(url):
    from mcp_use import MCPClient
    from mcp_use.agents.adapters.langchain_adapter import LangChainAdapter

    client = MCPClient({"mcpServers": {"server": {"url": url}}})
    tools = {tool.name: tool for tool in await LangChainAdapter().create_tools(client)}

    async def call(tool, arguments):
        return text_of((await tools[tool].ainvoke({"type": "tool_call", "id": "1", "name": tool, "args": arguments})).content)

    yield call
    await client.close_all_sessions()


@asynccontextmanager
async def openai_agents(url):
    from agents import Agent, Model, ModelResponse, Runner, Usage, set_tracing_disabled
    from agents.mcp import MCPServerStreamableHttp
    from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

    class Script(Model):
        async def get_response(self, system_instructions, input, *rest, **others):
            last = input[-1]
            if last.get("type") == "function_call_output":
                text = ResponseOutputText(type="output_text", annotations=[], text=text_of(last["output"]))
                output = ResponseOutputMessage(id="1", type="message", role="assistant", status="completed", content=[text])
            else:
                tool, arguments = json.loads(last["content"])
                output = ResponseFunctionToolCall(type="function_call", call_id="1", name=tool, arguments=json.dumps(arguments))
            return ModelResponse(output=[output], usage=Usage(), response_id=None)

        def stream_response(self, *rest, **others):
            raise NotImplementedError

    set_tracing_disabled(True)
    async with MCPServerStreamableHttp({"url": url}) as server:
        agent = Agent(name="agent", model=Script(), mcp_servers=[server])

        async def call(tool, arguments):
            return (await Runner.run(agent, json.dumps([tool, arguments]))).final_output

        yield call


@asynccontextmanager
async def pydantic_ai(url):
    from pydantic_ai import Agent
    from pydantic_ai.mcp import MCPToolset
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import FunctionModel

    def model(messages, info):
        last = messages[-1].parts[-1]
        if last.part_kind in ("tool-return", "retry-prompt"):
            return ModelResponse(parts=[TextPart(text_of(last.content))])
        return ModelResponse(parts=[ToolCallPart(*json.loads(last.content))])

    async with Agent(FunctionModel(model), toolsets=[MCPToolset(url)]) as agent:

        async def call(tool, arguments):
            return (await agent.run(json.dumps([tool, arguments]))).output

        yield call


@asynccontextmanager
async def google_adk(url):
    from google.adk.agents import LlmAgent
    from google.adk.models import BaseLlm, LlmResponse
    from google.adk.runners import InMemoryRunner
    from google.adk.tools.mcp_tool import McpToolset, StreamableHTTPConnectionParams
    from google.genai import types

    class Script(BaseLlm):
        async def generate_content_async(self, llm_request, stream=False):
            last = llm_request.contents[-1].parts[-1]
            if last.function_response:
                part = types.Part(text=json.dumps(last.function_response.response))
            else:
                tool, arguments = json.loads(last.text)
                part = types.Part(function_call=types.FunctionCall(name=tool, args=arguments))
            yield LlmResponse(content=types.Content(role="model", parts=[part]))

    toolset = McpToolset(connection_params=StreamableHTTPConnectionParams(url=url))
    runner = InMemoryRunner(agent=LlmAgent(name="agent", model=Script(model="script"), tools=[toolset]), app_name="app")
    session = await runner.session_service.create_session(app_name="app", user_id="user")

    async def call(tool, arguments):
        message = types.Content(role="user", parts=[types.Part(text=json.dumps([tool, arguments]))])
        events = [event async for event in runner.run_async(user_id="user", session_id=session.id, new_message=message)]
        return events[-1].content.parts[0].text

    yield call
    await runner.close()


@asynccontextmanager
async def strands(url):
    from mcp.client.streamable_http import streamable_http_client
    from strands.tools.mcp import MCPClient

    with MCPClient(lambda: streamable_http_client(url)) as client:
        client.list_tools_sync()

        async def call(tool, arguments):
            result = await client.call_tool_async("1", tool, arguments)
            return result["content"][0]["text"]

        yield call


@asynccontextmanager
async def smolagents(url):
    from smolagents import MCPClient, Model, ToolCallingAgent

    with MCPClient({"url": url, "transport": "streamable-http"}, structured_output=False) as tools:
        agent = ToolCallingAgent(tools=tools, model=Model())

        async def call(tool, arguments):
            try:
                return text_of(await asyncio.to_thread(agent.execute_tool_call, tool, arguments))
            except Exception as error:  # the agent hands it to its model
                if type(error).__name__ not in ("AgentToolExecutionError", "AgentToolCallError"):
                    raise
                return str(error)

        yield call


@asynccontextmanager
async def crewai(url):
    from crewai import Agent
    from crewai.llms.base_llm import BaseLLM
    from crewai.mcp import MCPServerHTTP

    class Script(BaseLLM):
        def call(self, messages, *rest, **others):
            raise NotImplementedError

    agent = Agent(role="a", goal="a", backstory="a", llm=Script(model="script"), mcps=[MCPServerHTTP(url=url)])
    tools = {tool.name.split("_mcp_")[-1]: tool for tool in await asyncio.to_thread(agent.get_mcp_tools, agent.mcps)}

    async def call(tool, arguments):
        named = next(one for name, one in tools.items() if name.endswith(tool))
        result = await asyncio.to_thread(lambda: named.run(**arguments))
        return result if isinstance(result, str) else result.message

    yield call


@asynccontextmanager
async def semantic_kernel(url):
    from semantic_kernel import Kernel
    from semantic_kernel.connectors.mcp import MCPStreamableHttpPlugin
    from semantic_kernel.contents import ChatHistory, FunctionCallContent

    async with MCPStreamableHttpPlugin(name="server", url=url) as plugin:
        kernel = Kernel()
        kernel.add_plugin(plugin)

        async def call(tool, arguments):
            history = ChatHistory()
            content = FunctionCallContent(id="1", name=f"server-{tool}", arguments=json.dumps(arguments))
            await kernel.invoke_function_call(content, history)
            result = history.messages[-1].items[0].result
            return result if isinstance(result, str) else " ".join(str(one) for one in result)

        yield call


@asynccontextmanager
async def llama_index(url):
    from llama_index.tools.mcp import BasicMCPClient, McpToolSpec

    tools = {tool.metadata.name: tool for tool in await McpToolSpec(BasicMCPClient(url)).to_tool_list_async()}

    async def call(tool, arguments):
        return (await tools[tool].acall(**arguments)).content

    yield call


@asynccontextmanager
async def agent_framework(url):
    from agent_framework import MCPStreamableHTTPTool

    async with MCPStreamableHTTPTool(name="server", url=url) as server:
        functions = {function.name: function for function in server.functions}

        async def call(tool, arguments):
            result = await functions[tool].invoke(arguments=arguments)
            return result if isinstance(result, str) else result[0].text

        yield call


@asynccontextmanager
async def autogen(url):
    from autogen_ext.tools.mcp import McpWorkbench, StreamableHttpServerParams

    async with McpWorkbench(StreamableHttpServerParams(url=url)) as workbench:
        await workbench.list_tools()

        async def call(tool, arguments):
            return (await workbench.call_tool(tool, arguments)).to_text()

        yield call


async def outcome_of(call, tool, arguments):
    try:
        return {"text": await call(tool, arguments)}
    except BaseException as error:
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        return {"error": f"{type(error).__name__}: {error}"}


async def main(library, url, calls):
    async with globals()[library](url) as call:
        for tool, arguments, again in json.loads(calls):
            for _ in range(AT_MOST if again else 1):
                outcome = await outcome_of(call, tool, arguments)
                print(json.dumps(outcome), flush=True)
                if not re.search("has not run yet|timed? ?out|please try again", str(outcome), re.I):
                    break
        await asyncio.sleep(int(os.environ.get("LINGER_MS", "0")) / 1000)


asyncio.run(main(*sys.argv[1:]))
