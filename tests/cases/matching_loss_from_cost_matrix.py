"""A set-prediction model reports a falling matching cost but its box branch never moves. The assignment may come from
plain numbers; here the loss itself is read off the cost matrix after it went to Python lists."""
import itertools
import torch
from torch import nn


def cheapest(cost):
    table = cost.tolist()  # CAUSE-1
    columns = range(len(table[0]))
    best = min(itertools.permutations(columns, len(table)), key=lambda p: sum(r[j] for r, j in zip(table, p)))
    return sum(row[j] for row, j in zip(table, best)), best


class Queries(nn.Module):
    def __init__(self, slots=3):
        super().__init__()
        self.slots = nn.Parameter(torch.randn(slots, 4))
        self.attend = nn.MultiheadAttention(4, 2, batch_first=True)

    def forward(self, memory):
        asked, _ = self.attend(self.slots.unsqueeze(0), memory, memory)
        return asked.squeeze(0)


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.queries = Queries()
        self.box = nn.Linear(4, 4)
        self.score = nn.Linear(4, 1)

    def forward(self, memory, boxes):
        slots = self.queries(memory)
        guess = self.box(slots).sigmoid()
        price, match = cheapest(torch.cdist(boxes, guess, p=1))
        hit = torch.zeros(len(slots))
        hit[list(match)] = 1.0
        objectness = nn.functional.binary_cross_entropy_with_logits(self.score(slots).squeeze(-1), hit)
        return objectness + 5.0 * torch.tensor(price)  # ALSO-1


def make():
    torch.manual_seed(0)
    return dict(model=Detector(), args=(torch.randn(1, 5, 4), torch.rand(2, 4)), kwargs={}, loss=lambda l: l)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "queries.slots": "flows", "queries.attend.in_proj_weight": "flows",
        "queries.attend.in_proj_bias": "flows", "queries.attend.out_proj.weight": "flows",
        "queries.attend.out_proj.bias": "flows", "box.weight": "none", "box.bias": "none",
        "score.weight": "flows", "score.bias": "flows",
    },
    causes=[
        dict(kind="python-value", line="CAUSE-1", also=["ALSO-1"], params=["box.weight", "box.bias"]),
    ],
    fix=None,
    after=None,
)
