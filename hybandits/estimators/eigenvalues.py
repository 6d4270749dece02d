"""Eigenvalues of matrices of second moments: how far features spread, and how strongly x and z are coupled.

A matrix of second moments is a sum of rows a a', with or without a ridge. The paper's guarantees ask that its smallest
eigenvalue grows with the number of rows, and that x and z of an arm are uncorrelated.
"""

import math
from typing import Any

import numpy as np

from hybandits.foundation.checks import FloatArray


def smallest(matrices: FloatArray) -> Any:
    """lambda_min of each of some symmetric matrices (.., n, n); NaN if n is 0."""
    if matrices.shape[-1] == 0:
        return np.full(matrices.shape[:-2], np.nan)
    return np.linalg.eigvalsh(matrices)[..., 0]


def largest_ratio(part: FloatArray, whole: FloatArray) -> float:
    """lambda_max(whole^-1/2 part whole^-1/2) for a positive definite `whole`; 0 for matrices of size 0."""
    if len(whole) == 0:
        return 0.0
    root = np.linalg.inv(np.linalg.cholesky(whole))
    return max(float(np.linalg.eigvalsh(root @ part @ root.T)[-1]), 0.0)


def coupling(v: FloatArray, b: FloatArray, w: FloatArray) -> float:
    """sigma_max(V^-1/2 B W^-1/2) for positive definite V and W."""
    return math.sqrt(largest_ratio(b @ np.linalg.solve(w, b.T), v))


def rank(moments: FloatArray, *, rcond: float) -> int:
    """Rank of the rows behind a matrix of second moments.

    A direction counts if its singular value exceeds `rcond` times the largest one, after columns are scaled to the same
    size.
    """
    if moments.size == 0:
        return 0
    sizes = np.sqrt(np.where(np.diag(moments) > 0, np.diag(moments), 1.0))
    values = np.linalg.eigvalsh(moments / np.outer(sizes, sizes))
    return int((values > rcond**2 * max(values[-1], 0.0)).sum()) if values[-1] > 0 else 0
