"""A whole tower of a recommender is silent: item prices were not scaled, so the pre-activations of its first layer are all far
below zero and ReLU passes nothing back."""
import torch
from torch import nn


class PriceTower(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(1, 5)
        nn.init.uniform_(self.fc.weight, -1.0, -0.1)
        self.out = nn.Linear(5, 3)

    def forward(self, price):
        return self.out(torch.relu(self.fc(price)))  # CAUSE-1


class Recommend(nn.Module):
    def __init__(self):
        super().__init__()
        self.users = nn.Embedding(6, 3)
        self.price = PriceTower()

    def forward(self, user, price):
        return (self.users(user) * self.price(price)).sum(-1)


def make():
    torch.manual_seed(0)
    args = (torch.tensor([0, 3, 5, 3]), torch.tensor([[120.0], [99.0], [310.0], [45.0]]))
    return dict(model=Recommend(), args=args, kwargs={}, loss=None)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "users.weight": "flows", "price.fc.weight": "zero", "price.fc.bias": "zero", "price.out.weight": "zero",
        "price.out.bias": "flows",
    },
    causes=[
        dict(kind="saturated", line="CAUSE-1", params=["price.fc.weight", "price.fc.bias", "price.out.weight"]),
    ],
    fix=None,
    after=None,
)
