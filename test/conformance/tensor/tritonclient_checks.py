"""NVIDIA's own client of the Open Inference Protocol, as a user writes it. Prints one JSON line per check."""
import json
import sys

import numpy as np
import tritonclient.http as http
from tritonclient.utils import InferenceServerException

ADDRESS, API_KEY, MODEL, DIRECT_ADDRESS, DIRECT_MODEL = sys.argv[1:6]
CONCURRENT = 64
ROWS = np.linspace(-2, 2, 24, dtype=np.float32).reshape(3, 8)

client = http.InferenceServerClient(url=ADDRESS, concurrency=8)


def headers():
    """Fresh ones for each call: the client writes the length of a binary head into the dictionary it is given."""
    return {"authorization": f"Bearer {API_KEY}"}


def request_of(rows, is_binary):
    tensor = http.InferInput("x", list(rows.shape), "FP32")
    tensor.set_data_from_numpy(rows, binary_data=is_binary)
    return [tensor]


def outputs_of(is_binary):
    return [http.InferRequestedOutput(name, binary_data=is_binary) for name in ("probs", "logits")]


def infer(rows=ROWS, is_binary=True, **more):
    return client.infer(MODEL, request_of(rows, is_binary), outputs=outputs_of(is_binary), headers=headers(), **more)


def refused(call, status, words):
    try:
        call()
    except InferenceServerException as error:
        assert error.status() == str(status), (error.status(), error.message())
        assert words in error.message(), error.message()
        return
    raise AssertionError("it was not refused")


def health():
    assert client.is_server_live(headers=headers())
    assert client.is_server_ready(headers=headers())
    assert client.is_model_ready(MODEL, headers=headers())
    assert not client.is_model_ready("no-such-model", headers=headers())


def metadata():
    assert "binary_tensor_data" in client.get_server_metadata(headers=headers())["extensions"]
    model = client.get_model_metadata(MODEL, headers=headers())
    assert model["name"] == MODEL
    assert model["inputs"] == [{"name": "x", "datatype": "FP32", "shape": [-1, 8]}], model
    assert client.get_model_metadata(MODEL, model_version=model["versions"][0], headers=headers())["name"] == MODEL


def binary():
    answer = infer(request_id="r-1")
    assert answer.get_response()["id"] == "r-1" and answer.get_response()["model_name"] == MODEL
    assert answer.as_numpy("logits").shape == (3, 3)
    assert np.allclose(answer.as_numpy("probs").sum(axis=1), 1, atol=1e-5)


def json_equals_binary():
    assert np.allclose(infer(is_binary=False).as_numpy("logits"), infer(is_binary=True).as_numpy("logits"), atol=1e-6)


def all_outputs_by_default():
    answer = client.infer(MODEL, request_of(ROWS, True), headers=headers())
    assert {output["name"] for output in answer.get_response()["outputs"]} == {"logits", "probs"}


def same_as_direct():
    direct = http.InferenceServerClient(url=DIRECT_ADDRESS)
    expected = direct.infer(DIRECT_MODEL, request_of(ROWS, True), outputs=outputs_of(True))
    answer = infer()
    for name in ("logits", "probs"):
        assert np.allclose(answer.as_numpy(name), expected.as_numpy(name), atol=1e-5), name


def concurrent():
    rows = [ROWS[:1] + index for index in range(CONCURRENT)]
    pending = [client.async_infer(MODEL, request_of(row, True), outputs=outputs_of(True), headers=headers()) for row in rows]
    for row, answer in zip(rows, pending):
        assert np.allclose(answer.get_result().as_numpy("logits"), infer(row).as_numpy("logits"), atol=1e-5)


def wrong_key():
    refused(lambda: client.infer(MODEL, request_of(ROWS, True), headers={"authorization": "Bearer sk-ps-wrong"}), 401, "API key")


def unknown_model():
    refused(lambda: client.infer("no-such-model", request_of(ROWS, True), headers=headers()), 404, "no-such-model")


def wrong_shape():
    refused(lambda: infer(ROWS[:, :7].copy()), 400, "[-1,8]")


def wrong_name():
    tensor = http.InferInput("nope", [1, 8], "FP32")
    tensor.set_data_from_numpy(ROWS[:1], binary_data=False)
    refused(lambda: client.infer(MODEL, [tensor], headers=headers()), 400, "nope")


def wrong_type():
    tensor = http.InferInput("x", [1, 8], "INT64")
    tensor.set_data_from_numpy(np.ones((1, 8), dtype=np.int64), binary_data=True)
    refused(lambda: client.infer(MODEL, [tensor], headers=headers()), 400, "INT64")


def shared_memory():
    tensor = http.InferInput("x", [1, 8], "FP32")
    tensor.set_shared_memory("somebody-elses", 32)
    refused(lambda: client.infer(MODEL, [tensor], headers=headers()), 400, "shared_memory")


CHECKS = {
    "health and readiness": health,
    "metadata of server, model and version": metadata,
    "binary tensors in and out": binary,
    "JSON gives what binary gives": json_equals_binary,
    "all outputs by default": all_outputs_by_default,
    "the same values as a real Triton, asked directly": same_as_direct,
    f"{CONCURRENT} at once, each with its own values": concurrent,
    "a wrong key is a 401": wrong_key,
    "an unknown model is a 404": unknown_model,
    "a wrong shape is a 400": wrong_shape,
    "an unknown input is a 400": wrong_name,
    "a wrong datatype is a 400": wrong_type,
    "the shared memory of others is out of reach": shared_memory,
}

for name, check in CHECKS.items():
    try:
        check()
        print(json.dumps({"check": name, "ok": True}), flush=True)
    except Exception as error:  # Every failure is a finding, whatever its kind.
        print(json.dumps({"check": name, "ok": False, "detail": f"{type(error).__name__}: {error}"}), flush=True)
