"""`/review-tiers` and `/products` of an organization."""

from typing import Any
from uuid import UUID

from django.urls import path
from django.utils import timezone
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from governance.people.rules.roles import ApiScope
from governance.people.selectors.people import organization_of
from governance.people.services.role_groups import review_tier_change, review_tier_create
from governance.tenancy.models import SLUG, TIER, Product, ReviewerTier
from governance.tenancy.selectors import product_list, review_tier_list, tenant_get
from governance.tenancy.services import product_change, product_create
from reasoncodes.base.api import ApiView, StrictSerializer

READ = ApiScope.ORCHESTRATOR_READ
WRITE = ApiScope.ORCHESTRATOR_WRITE


class ReviewTierOut(serializers.ModelSerializer[ReviewerTier]):
    org_id = serializers.UUIDField(source="organization_id")
    role = serializers.SerializerMethodField(help_text="What `role.give` gives a person who shall decide.")

    class Meta:
        model = ReviewerTier
        fields = ["id", "org_id", "slug", "role", "label", "description", "active", "created_at"]

    def get_role(self, tier: ReviewerTier) -> str:
        return f"reviewer:{tier.slug}"


class ReviewTierFilter(StrictSerializer):
    slug = serializers.CharField(max_length=54, required=False)
    active = serializers.BooleanField(required=False, allow_null=True, default=None)


class ReviewTierCreateIn(StrictSerializer):
    slug = serializers.RegexField(TIER, help_text="What policies and definitions name. It never changes.")
    label = serializers.CharField(max_length=80, help_text="What people see.")  # type: ignore[assignment]
    description = serializers.CharField(max_length=280, allow_blank=True, required=False, default="")
    org_id = serializers.UUIDField(required=False, help_text="Needed when you act in several organizations.")


class ReviewTierPatchIn(StrictSerializer):
    label = serializers.CharField(max_length=80, required=False)  # type: ignore[assignment]
    description = serializers.CharField(max_length=280, allow_blank=True, required=False)
    active = serializers.BooleanField(required=False)


TIER_EXAMPLE = OpenApiExample(
    "People who release refunds",
    value={"slug": "finance", "label": "Finance", "description": "Releases refunds."},
    request_only=True,
)
TIER_CHANGE = OpenApiExample("Another label", value={"label": "Finance team"}, request_only=True)


class ReviewTierListApi(ApiView):
    required_scopes = {"GET": READ, "POST": WRITE}

    @extend_schema(operation_id="review_tiers_list", parameters=[ReviewTierFilter], responses=ReviewTierOut(many=True))
    def get(self, request: Request) -> Response:
        return self.page(request, review_tier_list(**self.query(request, ReviewTierFilter)), ReviewTierOut)

    @extend_schema(
        operation_id="review_tiers_create",
        request=ReviewTierCreateIn,
        responses={201: ReviewTierOut},
        examples=[TIER_EXAMPLE],
    )
    def post(self, request: Request) -> Response:
        fields, actor = self.body(request, ReviewTierCreateIn), self.actor(request)
        organization = organization_of(actor=actor, org_id=fields.pop("org_id", None))
        tier = review_tier_create(actor=actor, at=timezone.now(), organization=organization, **fields)
        return Response(ReviewTierOut(tier).data, status=status.HTTP_201_CREATED)


class ReviewTierApi(ApiView):
    required_scopes = {"GET": READ, "PATCH": WRITE, "DELETE": WRITE}

    @extend_schema(operation_id="review_tiers_read", responses=ReviewTierOut)
    def get(self, request: Request, tier_id: UUID) -> Response:
        self.query(request)
        return Response(ReviewTierOut(tenant_get(ReviewerTier, tier_id)).data)

    @extend_schema(
        operation_id="review_tiers_change",
        request=ReviewTierPatchIn,
        responses=ReviewTierOut,
        examples=[TIER_CHANGE],
    )
    def patch(self, request: Request, tier_id: UUID) -> Response:
        changes = self.body(request, ReviewTierPatchIn)
        tier = review_tier_change(actor=self.actor(request), at=timezone.now(), tier_id=tier_id, changes=changes)
        return Response(ReviewTierOut(tier).data)

    @extend_schema(operation_id="review_tiers_deactivate", responses={204: None})
    def delete(self, request: Request, tier_id: UUID) -> Response:
        review_tier_change(actor=self.actor(request), at=timezone.now(), tier_id=tier_id, changes={"active": False})
        return Response(status=status.HTTP_204_NO_CONTENT)


class ProductOut(serializers.ModelSerializer[Product]):
    org_id = serializers.UUIDField(source="organization_id")

    class Meta:
        model = Product
        fields = ["id", "org_id", "slug", "name", "created_at"]


class ProductFilter(StrictSerializer):
    slug = serializers.CharField(max_length=63, required=False)


class ProductCreateIn(StrictSerializer):
    slug = serializers.RegexField(SLUG)
    name = serializers.CharField(max_length=120)
    org_id = serializers.UUIDField(required=False, help_text="Needed when you act in several organizations.")


class ProductPatchIn(StrictSerializer):
    name = serializers.CharField(max_length=120, required=False)


PRODUCT_EXAMPLE = OpenApiExample("A product", value={"slug": "refunds", "name": "Refunds"}, request_only=True)
PRODUCT_CHANGE = OpenApiExample("Another name", value={"name": "Refunds and returns"}, request_only=True)


class ProductListApi(ApiView):
    required_scopes = {"GET": READ, "POST": WRITE}

    @extend_schema(operation_id="products_list", parameters=[ProductFilter], responses=ProductOut(many=True))
    def get(self, request: Request) -> Response:
        return self.page(request, product_list(**self.query(request, ProductFilter)), ProductOut)

    @extend_schema(
        operation_id="products_create",
        request=ProductCreateIn,
        responses={201: ProductOut},
        examples=[PRODUCT_EXAMPLE],
    )
    def post(self, request: Request) -> Response:
        fields, actor = self.body(request, ProductCreateIn), self.actor(request)
        organization = organization_of(actor=actor, org_id=fields.pop("org_id", None))
        product = product_create(actor=actor, at=timezone.now(), organization=organization, **fields)
        return Response(ProductOut(product).data, status=status.HTTP_201_CREATED)


class ProductApi(ApiView):
    required_scopes = {"GET": READ, "PATCH": WRITE}

    @extend_schema(operation_id="products_read", responses=ProductOut)
    def get(self, request: Request, product_id: UUID) -> Response:
        self.query(request)
        return Response(ProductOut(tenant_get(Product, product_id)).data)

    @extend_schema(
        operation_id="products_change", request=ProductPatchIn, responses=ProductOut, examples=[PRODUCT_CHANGE]
    )
    def patch(self, request: Request, product_id: UUID) -> Response:
        changes: dict[str, Any] = self.body(request, ProductPatchIn)
        product = product_change(actor=self.actor(request), at=timezone.now(), product_id=product_id, **changes)
        return Response(ProductOut(product).data)


urlpatterns = [
    path("review-tiers", ReviewTierListApi.as_view(), name="review_tier_list"),
    path("review-tiers/<uuid:tier_id>", ReviewTierApi.as_view(), name="review_tier"),
    path("products", ProductListApi.as_view(), name="product_list"),
    path("products/<uuid:product_id>", ProductApi.as_view(), name="product"),
]
