"""Schemathesis asks everything that the description of the API allows, and much that it does not."""

from __future__ import annotations

import json
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.specs.openapi import checks

from hybandits.service.api import document
from tests.support.bandits import CLICKS, put, served, writer

EXAMPLES = 25
"""Requests for every operation."""

pytestmark = pytest.mark.slow
schema = schemathesis.openapi.from_dict(json.loads(document()))


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Any:
    service = writer(tmp_path_factory.mktemp("schema"), CLICKS, challengers=[{"name": "bold", "policy": "HyThompson"}])
    put(service, "a", "b")
    with served(service) as web:
        yield str(web.base_url).rstrip("/")
        assert web.get("/readyz").status_code == 200


@schema.parametrize()
@settings(
    max_examples=EXAMPLES, deadline=None, derandomize=True, database=None,
    suppress_health_check=list(HealthCheck),
)  # fmt: skip
def test_answers_are_as_described(case: Any, address: str) -> None:
    case.call_and_validate(
        base_url=address,
        timeout=60,
        checks=(
            schemathesis.checks.not_a_server_error, checks.status_code_conformance, checks.content_type_conformance,
            checks.response_schema_conformance, checks.negative_data_rejection, checks.unsupported_method,
        ),
    )  # fmt: skip


def test_an_answer_that_no_client_can_see_is_not_described() -> None:
    """408 is for clients that went away."""
    paths = json.loads(document())["paths"]
    operations = [operation for path in paths.values() for operation in path.values()]
    assert not [operation["operationId"] for operation in operations if "408" in operation["responses"]]
