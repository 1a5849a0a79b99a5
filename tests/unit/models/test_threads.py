import pytest
import torch

from calibrant.models.threads import one_core_each


def test_torch_computes_on_one_core_and_gets_the_others_back():
    before = torch.get_num_threads()
    with one_core_each() as cores:
        assert cores == before
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == before


def test_the_cores_come_back_after_an_error():
    before = torch.get_num_threads()
    with pytest.raises(ValueError, match="broke"), one_core_each():
        raise ValueError("broke")
    assert torch.get_num_threads() == before
