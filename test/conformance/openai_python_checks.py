"""The official Python client, as a user writes it. Prints one JSON line per check."""
import json
import sys

from openai import AuthenticationError, BadRequestError, NotFoundError, OpenAI

BASE_URL, API_KEY, MODEL = sys.argv[1:4]
QUESTION = [{"role": "user", "content": "What is the capital of France? Answer in one sentence."}]
TOKENS_MAX = 24


def client_with(key=API_KEY):
    return OpenAI(base_url=BASE_URL, api_key=key, max_retries=0, _strict_response_validation=True)


def models_list():
    ids = [model.id for model in client_with().models.list()]
    assert MODEL in ids, ids


def chat():
    answer = client_with().chat.completions.create(model=MODEL, messages=QUESTION, max_tokens=TOKENS_MAX, temperature=0)
    assert answer.model == MODEL
    assert answer.choices[0].message.content
    usage = answer.usage
    assert usage.prompt_tokens > 0 and 0 < usage.completion_tokens <= TOKENS_MAX
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens


def chat_streamed():
    stream = client_with().chat.completions.create(
        model=MODEL, messages=QUESTION, max_tokens=TOKENS_MAX, stream=True, stream_options={"include_usage": True}
    )
    chunks = list(stream)
    assert len({chunk.id for chunk in chunks}) == 1
    assert chunks[0].choices[0].delta.role == "assistant"
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert chunks[-1].choices == [] and chunks[-1].usage.completion_tokens > 0
    assert all(chunk.usage is None for chunk in chunks[:-1])


def refused(kind, call, **expected):
    try:
        call()
    except kind as error:
        for name, value in expected.items():
            assert getattr(error, name) == value, (name, getattr(error, name))
        assert error.request_id, "no request id"
        return
    raise AssertionError(f"expected {kind.__name__}")


def wrong_key():
    refused(AuthenticationError, lambda: client_with("sk-ps-wrong").models.list(), code="invalid_api_key")


def unknown_model():
    refused(NotFoundError, lambda: client_with().chat.completions.create(model="no-such-model", messages=QUESTION), code="model_not_found")


def bad_parameter():
    refused(BadRequestError, lambda: client_with().chat.completions.create(model=MODEL, messages=QUESTION, temperature=9), param="temperature")


def empty_messages():
    refused(BadRequestError, lambda: client_with().chat.completions.create(model=MODEL, messages=[]), code="empty_array", param="messages")


def file_deleted():
    """The Python client sends a JSON content type with an empty body here."""
    client = client_with()
    uploaded = client.files.create(file=("input.jsonl", b'{"custom_id":"a","method":"POST","url":"/v1/chat/completions","body":{"model":"m","messages":[]}}'), purpose="batch")
    assert client.files.delete(uploaded.id).deleted


CHECKS = {
    "models.list names the model": models_list,
    "chat, unstreamed": chat,
    "chat, streamed": chat_streamed,
    "a wrong key is an AuthenticationError": wrong_key,
    "an unknown model is a NotFoundError": unknown_model,
    "a bad parameter is a BadRequestError that names it": bad_parameter,
    "no messages is a BadRequestError that names them": empty_messages,
    "a file is uploaded and deleted": file_deleted,
}

for name, check in CHECKS.items():
    try:
        check()
        print(json.dumps({"check": name, "ok": True}), flush=True)
    except Exception as error:  # Every failure is a finding, whatever its kind.
        print(json.dumps({"check": name, "ok": False, "detail": f"{type(error).__name__}: {error}"}), flush=True)
