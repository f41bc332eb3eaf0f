"""A recommender in which only the final layer learns: the user side is cut to whole numbers, and the item side is scored under a
no_grad block that was meant for an index refresh."""
import torch
from torch import nn


class Users(nn.Module):
    def __init__(self):
        super().__init__()
        self.age = nn.Linear(3, 1)
        self.table = nn.Embedding(6, 4)

    def forward(self, x):
        bucket = (self.age(x).sigmoid().squeeze(-1) * 5).int()  # CAUSE-1
        return self.table(bucket)


class Items(nn.Module):
    def __init__(self):
        super().__init__()
        self.text = nn.EmbeddingBag(9, 4, mode="mean")

    def forward(self, bags):
        with torch.no_grad():  # CAUSE-2
            index = self.text(bags)  # ALSO-2
        return index


class Recommend(nn.Module):
    def __init__(self):
        super().__init__()
        self.users = Users()
        self.items = Items()
        self.mix = nn.Bilinear(4, 4, 1)

    def forward(self, x, bags):
        return self.mix(self.users(x), self.items(bags))


def make():
    torch.manual_seed(0)
    return dict(model=Recommend(), args=(torch.randn(5, 3), torch.randint(0, 9, (5, 3))), kwargs={}, loss=None)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "users.age.weight": "none", "users.age.bias": "none", "users.table.weight": "flows",
        "items.text.weight": "none", "mix.weight": "flows", "mix.bias": "flows",
    },
    causes=[
        dict(kind="int-cast", line="CAUSE-1", params=["users.age.weight", "users.age.bias"]),
        dict(kind="no-grad", line="CAUSE-2", also=["ALSO-2"], params=["items.text.weight"]),
    ],
    fix=None,
    after=None,
)
